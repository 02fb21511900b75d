"""Client quotas: described and altered, of users, client ids, both, and addresses."""

from collections.abc import Mapping

from ottla.client.admin.asking import ask_any, raise_for
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation
from ottla.wire.apis import alter_client_quotas as altering
from ottla.wire.apis import describe_client_quotas as describing

EXACT, OF_DEFAULT, ANY = 0, 1, 2
Entity = Mapping[str, str | None]
"""Names by kinds (``user``, ``client-id``, ``ip``); None is the default of that kind."""


class Every:
    """In place of a name: every entity of that kind."""


EVERY = Every()
Wanted = Mapping[str, "str | Every | None"]


def describe_quotas(
    engine: Engine, wanted: Wanted, timeout_ms: int | None = None
) -> Operation[list[tuple[dict[str, str | None], dict[str, float]]]]:
    """The entities of exactly these kinds that have quotas, and their quotas."""
    rows = [_component(kind, name) for kind, name in wanted.items()]
    request = describing.DescribeClientQuotasRequest(components=rows, strict=True)
    response = yield from ask_any(engine, request, describing.DescribeClientQuotasResponse, timeout_ms)
    raise_for(response.error_code, response.error_message)
    return [
        (
            {each.entity_type: each.entity_name for each in entry.entity},
            {each.key: each.value for each in entry.values},
        )
        for entry in response.entries or ()
    ]


def _component(kind: str, name: "str | Every | None") -> describing.ComponentData:
    if isinstance(name, Every):
        return describing.ComponentData(kind, ANY, None)
    return describing.ComponentData(kind, OF_DEFAULT if name is None else EXACT, name)


def alter_quotas(
    engine: Engine, entity: Entity, changes: Mapping[str, float | None], timeout_ms: int | None = None
) -> Operation[None]:
    """Set quotas of one entity, and remove those with None."""
    entry = altering.RequestEntryData(
        entity=[altering.EntityData(kind, name) for kind, name in entity.items()],
        ops=[altering.OpData(key, value or 0.0, value is None) for key, value in changes.items()],
    )
    request = altering.AlterClientQuotasRequest(entries=[entry])
    response = yield from ask_any(engine, request, altering.AlterClientQuotasResponse, timeout_ms)
    for row in response.entries:
        raise_for(row.error_code, row.error_message)
