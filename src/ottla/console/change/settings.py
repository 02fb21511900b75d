"""Change one setting of a topic or of a broker, or put it back to its default."""

from shlex import quote

from ottla.client.admin.configs import Change as Altered
from ottla.client.admin.configs import (
    ConfigOperation,
    Resource,
    ResourceType,
    alter_configs,
    describe_configs,
)
from ottla.console.change.act import (
    Act,
    At,
    CannotAct,
    Change,
    Field,
    Filled,
    Outcome,
    Plan,
    number_in,
    outcome,
)

DEFAULT_SOURCE = 5


async def _plan(at: At, filled: Filled) -> Plan:
    kind, of, name = filled["kind"], filled["of"].strip(), filled["name"].strip()
    value = filled.get("value", "")
    resource: Resource = (ResourceType.TOPIC, of)
    if kind == "broker":
        number_in(filled, "of", "A broker", 0, 2**31 - 1)
        resource = (ResourceType.BROKER, of)
        if int(of) not in at.picture.live:
            raise CannotAct(f"Broker {of} is not alive: its settings change where it runs.")
    elif of not in at.picture.topics:
        raise CannotAct(f"There is no topic {of}.")
    (described,) = await at.client.run(describe_configs, [resource], keys=[name])
    row = next((row for row in described.configs if row.name == name), None)
    if row is None:
        raise CannotAct(f"A {kind} has no setting {name}; /configs lists those there are.")
    altered: Altered = (ConfigOperation.SET, value) if value else (ConfigOperation.DELETE, None)
    change = {resource: {name: altered}}
    (checked,) = await at.client.run(alter_configs, change, validate_only=True)
    if checked.error_code:
        raise CannotAct(
            f"The cluster would refuse: {outcome(name, checked.error_code, checked.error_message).said}."
        )
    now = "hidden" if row.is_sensitive else f"{row.value}"
    is_default = row.config_source == DEFAULT_SOURCE

    async def work() -> list[Outcome]:
        (done,) = await at.client.run(alter_configs, change)
        return [outcome(f"{name} of {kind} {of}", done.error_code, done.error_message)]

    return Plan(
        f"One setting of {kind} {of} would change.",
        work,
        [Change(name, now + (" (the default)" if is_default else ""), value or "the default")],
    )


def _command(filled: Filled) -> str:
    name, value = filled.get("name") or "NAME", filled.get("value")
    change = f"--add-config {quote(f'{name}={value}')}" if value else f"--delete-config {quote(name)}"
    of = quote(filled.get("of") or "NAME")
    return f"ottla configs --alter --entity-type {filled.get('kind') or 'topic'}s --entity-name {of} {change}"


CONFIGURE = Act(
    "configs",
    "/configs/change",
    "Change a setting",
    "Change it",
    (
        Field("kind", "Of a", "choice", "", ("topic", "broker")),
        Field("of", "Called", hint="the topic's name, or the broker's number"),
        Field("name", "Setting", hint="retention.ms, for example"),
        Field("value", "Value", hint="empty: back to the default", is_needed=False),
    ),
    _plan,
    _command,
)
