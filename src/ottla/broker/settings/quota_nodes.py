"""Client quotas as ZooKeeper has them: those of users, client ids, both together, and addresses."""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from ottla.broker.runtime.tasks import Steps, persistently
from ottla.broker.settings.reading import READS_AT_ONCE, read_all
from ottla.security.quotas.table import DEFAULT, Entity, parse
from ottla.znodes import paths
from ottla.znodes.codec import MalformedZnode
from ottla.znodes.codec_config import decode_config
from ottla.zookeeper.ops import Children, Data, GetChildren, GetData, MultiRead, ReadOp

log = logging.getLogger(__name__)

QUOTA_KINDS: Final = ("users", "clients", "ips")
Limits = dict[str, float]


class QuotaNodes:
    """Reads quotas at the start and again after each note of a change, and tells of what was found."""

    def __init__(self) -> None:
        self.tell: Callable[[str, Entity, Limits], None] = lambda kind, entity, limits: None
        self.known: dict[str, Limits] = {}
        """All entities that have quotas, by their paths under ``/config``."""

    def load(self) -> Steps[None]:
        """Read all."""
        found = dict.fromkeys(self.known)
        for kind in QUOTA_KINDS:
            found.update(dict.fromkeys((yield from _children(kind))))
        users = [entity for entity in found if entity.startswith("users/") and entity.count("/") == 1]
        for user in users:
            found.update(dict.fromkeys((yield from _children(f"{user}/clients"))))
        yield from self.read(found)

    def read(self, entities: Iterable[str]) -> Steps[None]:
        """Read these again, by their paths under ``/config``."""
        wanted = list(entities)
        for begin in range(0, len(wanted), READS_AT_ONCE):
            some = wanted[begin : begin + READS_AT_ONCE]
            reads = tuple(GetData(f"{paths.CONFIG}/{entity}") for entity in some)
            yield from read_all(MultiRead(reads), self._took)

    def _took(self, read: ReadOp, result: object) -> None:
        path = read.path.removeprefix(f"{paths.CONFIG}/")
        try:
            kind, entity = entity_of(path)
            config = decode_config(result.data).config if isinstance(result, Data) else {}
        except (MalformedZnode, ValueError) as malformed:
            log.warning("a quota cannot be read entity=%s reason=%s", path, malformed)
            return
        limits, unreadable = parse(kind, config)
        for key in unreadable:
            log.warning("a quota is ignored entity=%s quota=%s reason=not a number", path, key)
        if limits:
            self.known[path] = limits
        else:
            self.known.pop(path, None)
        self.tell(kind, entity, limits)


def _children(entity: str) -> Steps[list[str]]:
    listed = yield from persistently(GetChildren(f"{paths.CONFIG}/{entity}"))
    return [f"{entity}/{name}" for name in listed.names] if isinstance(listed, Children) else []


def entity_of(path: str) -> tuple[str, Entity]:
    """The kind and the names in a path under ``/config``; ``ValueError`` for one that is not of quotas."""
    match path.split("/"):
        case ["users", user]:
            return "users", Entity(_name(user), None)
        case ["users", user, "clients", client]:
            return "users", Entity(_name(user), _name(client))
        case ["clients", client]:
            return "clients", Entity(None, _name(client))
        case ["ips", address]:
            return "ips", Entity(_name(address), None)
    raise ValueError("no entity of quotas")


def path_of(kind: str, entity: Entity) -> str:
    """The other way round."""
    user, client = (None if name is None else _node(name) for name in entity)
    if kind == "clients":
        return f"clients/{client}"
    return f"{kind}/{user}" if client is None else f"users/{user}/clients/{client}"


def _name(node: str) -> str:
    return node if node == DEFAULT else paths.desanitized(node)


def _node(name: str) -> str:
    return name if name == DEFAULT else paths.sanitized(name)
