"""Describe- and AlterClientQuotas: quotas of users, client ids and addresses, under ``/config``.

Any broker changes them; every broker hears of it by a note and enforces them.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.runtime.tasks import Steps, persistently
from ottla.broker.settings.quota_nodes import entity_of, path_of
from ottla.broker.settings.resources import InvalidResource
from ottla.broker.settings.writer import write_overrides
from ottla.model.errors import ErrorCode
from ottla.security.quotas.table import CONNECTIONS, DEFAULT, FETCH, MUTATIONS, PRODUCE, REQUEST, Entity
from ottla.security.quotas.values import NotWhole, stored_value
from ottla.wire.apis import alter_client_quotas as altering
from ottla.wire.apis import describe_client_quotas as describing
from ottla.znodes import paths
from ottla.znodes.codec_config import ConfigNode, decode_config
from ottla.zookeeper.ops import Children, Data, Delete, GetChildren, GetData

USER: Final = "user"
CLIENT: Final = "client-id"
IP: Final = "ip"
KINDS: Final = (USER, CLIENT, IP)
EXACT: Final = 0
OF_DEFAULT: Final = 1
ANY: Final = 2
TYPES: Final = {PRODUCE: "LONG", FETCH: "LONG", REQUEST: "DOUBLE", MUTATIONS: "DOUBLE"}
IP_TYPES: Final = {CONNECTIONS: "INT"}
Names = dict[str, str]
"""An entity: its names by their kinds, as its znodes have them."""


# ---- alter


def alter(node: Node, request: Request, body: altering.AlterClientQuotasRequest) -> None:
    """One entity after the other; each has its own outcome."""

    def steps() -> Steps[altering.AlterClientQuotasResponse]:
        rows = []
        for entry in body.entries:
            refusal = yield from _alter(entry, body.validate_only)
            row = altering.ResponseEntryData(error_message=None, entity=entry.entity)
            if refusal is not None:
                row.error_code, row.error_message = refusal.code, refusal.message
            rows.append(row)
        return altering.AlterClientQuotasResponse(entries=rows)

    node.tasks.spawn(steps(), request, request.reply)


def _alter(entry: altering.RequestEntryData, validate_only: bool) -> Steps[InvalidResource | None]:
    try:
        kind, entity = _entity(entry.entity)
    except InvalidResource as invalid:
        return invalid
    types = IP_TYPES if kind == "ips" else TYPES

    def changed(before: Mapping[str, str]) -> dict[str, str]:
        after = dict(before)
        for op in entry.ops:
            if op.remove:
                after.pop(op.key, None)
            elif op.key not in types:
                raise _invalid(f"Invalid configuration key {op.key}")
            else:
                try:
                    after[op.key] = stored_value(op.value, types[op.key])
                except NotWhole:
                    raise _invalid(f"Configuration {op.key} must be a {types[op.key]} value") from None
        if not validate_only and kind == "ips" and int(after.get(CONNECTIONS, 0)) < 0:
            raise InvalidResource(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        return after

    path = path_of(kind, entity)
    refusal = yield from write_overrides(path, changed, validate_only)
    if refusal is None and not validate_only:
        yield from _remove_if_empty(f"{paths.CONFIG}/{path}")
    return refusal


def _entity(rows: list[altering.EntityData]) -> tuple[str, Entity]:
    names: Names = {}
    for row in rows:
        if row.entity_type not in KINDS:
            raise _invalid(f"Unhandled client quota entity type: {row.entity_type}")
        if row.entity_name == "":
            raise _invalid(f"Empty {row.entity_type} not supported")
        names[row.entity_type] = DEFAULT if row.entity_name is None else row.entity_name
    if IP in names and len(names) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity should not be used with user/client ID entity."
        )
    if IP in names:
        if not _is_address(names[IP]):
            raise _invalid(f"{names[IP]} is not a valid IP or resolvable host.")
        return "ips", Entity(names[IP], None)
    if not names:
        raise _invalid("Invalid empty client quota entity")
    return "users" if USER in names else "clients", Entity(names.get(USER), names.get(CLIENT))


def _is_address(name: str) -> bool:
    try:
        return name == DEFAULT or bool(ip_address(name))
    except ValueError:
        return False


def _invalid(why: str) -> InvalidResource:
    return InvalidResource(ErrorCode.INVALID_REQUEST, why)


def _remove_if_empty(path: str) -> Steps[None]:
    """What says nothing any more is not kept, as in Kafka: nor a user's ``clients`` without any."""
    found = yield from persistently(GetData(path))
    below = yield from persistently(GetChildren(path))
    if not isinstance(found, Data) or decode_config(found.data) != ConfigNode({}):
        return
    if not isinstance(below, Children) or below.names:
        return
    yield from persistently(Delete(path, found.stat.version))
    if path.startswith(f"{paths.CONFIG_USERS}/") and "/clients/" in path:
        yield from _remove_if_empty(path.rpartition("/")[0])
        yield from _remove_if_empty(path.rpartition("/clients/")[0])


# ---- describe


def describe(node: Node, request: Request, body: describing.DescribeClientQuotasRequest) -> None:
    """Answered from ZooKeeper, so that a change is seen at once, whoever made it."""
    quotas = node.configs.quotas

    def steps() -> Steps[describing.DescribeClientQuotasResponse]:
        try:
            components = _components(body.components)
        except InvalidResource as invalid:
            return describing.DescribeClientQuotasResponse(
                error_code=invalid.code, error_message=invalid.message, entries=None
            )
        yield from quotas.load()
        entries = [
            _described(names, limits)
            for path, limits in quotas.known.items()
            if _matches(components, names := _names(path), body.strict)
        ]
        return describing.DescribeClientQuotasResponse(error_message=None, entries=entries)

    node.tasks.spawn(steps(), request, request.reply)


def _components(rows: list[describing.ComponentData]) -> dict[str, str | None]:
    """By kind the name to be matched; None matches all that have one."""
    components: dict[str, str | None] = {}
    for row in rows:
        kind = row.entity_type
        if row.match_type not in (EXACT, OF_DEFAULT, ANY):
            raise InvalidResource(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        if kind in components:
            name = "client" if kind == CLIENT else kind
            raise _invalid(f"Duplicate {name} filter component entity type")
        if not kind:
            raise _invalid("Unexpected empty filter component entity type")
        if kind not in KINDS:
            raise InvalidResource(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported")
        components[kind] = {EXACT: row.match, OF_DEFAULT: DEFAULT, ANY: None}[row.match_type]
    if IP in components and len(components) > 1:
        raise _invalid(
            "Invalid entity filter component combination, IP filter component should not be used with user or"
            " clientId filter component."
        )
    return components


def _names(path: str) -> Names:
    kind, (user, client) = entity_of(path)
    if kind == "ips":
        return {IP: user or ""}
    both = {USER: user, CLIENT: client}
    return {kind: name for kind, name in both.items() if name is not None}


def _matches(components: Mapping[str, str | None], names: Names, is_strict: bool) -> bool:
    if any(kind not in names or wanted not in (None, names[kind]) for kind, wanted in components.items()):
        return False
    return not is_strict or names.keys() == components.keys()


def _described(names: Names, limits: Mapping[str, float]) -> describing.EntryData:
    entity = [
        describing.EntityData(entity_type=kind, entity_name=None if name == DEFAULT else name)
        for kind, name in names.items()
    ]
    values = [describing.ValueData(key=key, value=value) for key, value in limits.items()]
    return describing.EntryData(entity=entity, values=values)
