"""The SCRAM credentials of all users, as ``/config/users`` has them.

A credential that somebody wrote by hand and nobody can read lets nobody in; the user's others still do.
"""

import logging
from collections.abc import Iterable, Mapping

from ottla.broker.runtime.tasks import Steps, persistently
from ottla.broker.settings.reading import READS_AT_ONCE, read_all
from ottla.security.sasl.scram import HASHES, ScramCredential, parse_credential
from ottla.znodes import paths
from ottla.znodes.codec import MalformedZnode
from ottla.znodes.codec_config import decode_config
from ottla.zookeeper.ops import Children, Data, GetChildren, GetData, MultiRead, ReadOp

log = logging.getLogger(__name__)


class Users:
    """Who may log in with SCRAM, read at the start and again after each note of a change."""

    def __init__(self) -> None:
        self._by_mechanism: dict[str, dict[str, ScramCredential]] = {name: {} for name in HASHES}

    def of(self, mechanism: str) -> Mapping[str, ScramCredential]:
        """The credentials of all users for one mechanism."""
        return self._by_mechanism[mechanism]

    @property
    def names(self) -> list[str]:
        """The users that have any credential, sorted."""
        return sorted({user for known in self._by_mechanism.values() for user in known})

    def load(self) -> Steps[None]:
        """Read all users."""
        listed = yield from persistently(GetChildren(paths.CONFIG_USERS))
        if not isinstance(listed, Children):
            return
        gone = {paths.sanitized(user) for user in self.names} - set(listed.names)
        yield from self.read(sorted({*listed.names, *gone} - {paths.DEFAULT_ENTITY}))

    def read(self, entities: Iterable[str]) -> Steps[None]:
        """Read these again, by the names of their znodes."""
        wanted = list(entities)
        for begin in range(0, len(wanted), READS_AT_ONCE):
            some = wanted[begin : begin + READS_AT_ONCE]
            reads = tuple(GetData(paths.config_entity("users", entity)) for entity in some)
            yield from read_all(MultiRead(reads), self._took)

    def _took(self, read: ReadOp, result: object) -> None:
        entity = read.path.rpartition("/")[2]
        try:
            config = decode_config(result.data).config if isinstance(result, Data) else {}
            user = paths.desanitized(entity)
        except (MalformedZnode, ValueError) as malformed:
            log.warning("a user cannot be read entity=users/%s reason=%s", entity, malformed)
            return
        for mechanism, known in self._by_mechanism.items():
            known.pop(user, None)
            if mechanism in config:
                try:
                    known[user] = parse_credential(config[mechanism])
                except ValueError as wrong:
                    log.warning(
                        "a credential cannot be read entity=users/%s mechanism=%s reason=%s",
                        entity,
                        mechanism,
                        wrong,
                    )
