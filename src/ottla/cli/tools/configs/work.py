"""What ``ottla configs`` reads and writes."""

import re
from dataclasses import dataclass
from typing import Any, Self

import typer

from ottla.cli.shared.connection import reason
from ottla.cli.shared.options import Output
from ottla.cli.shared.printing import print_rows
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.client.admin.configs import ConfigOperation, ResourceType, alter_configs, describe_configs
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.insight.wording import joined
from ottla.wire.apis.describe_configs import DescribeConfigsResourceResult

COLUMNS = ("entity_type", "entity_name", "name", "value", "source", "sensitive")
SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
}
_KINDS = {
    "topics": ResourceType.TOPIC,
    "brokers": ResourceType.BROKER,
    "broker-loggers": ResourceType.BROKER_LOGGER,
}
_OTHERS = ("client-metrics", "groups")
_PAIR = re.compile(r"\s*([^=,\s]+)\s*=\s*(?:\[([^\]]*)\]|([^,]*))\s*(?:,|$)")


@dataclass(frozen=True, slots=True)
class Entity:
    """What has settings; an empty name is the default of all brokers, ``None`` stands for each one."""

    kind: ResourceType
    name: str | None

    @classmethod
    def of(cls, kind: str, name: str | None) -> Self:
        if kind in _OTHERS:
            raise CommandRefused(
                f"--entity-type {kind} is not supported; topics, brokers, broker-loggers, users, clients"
                " and ips are"
            )
        if kind not in _KINDS:
            raise UsageRefused(f"--entity-type {kind!r} is none of {', '.join(_KINDS)}, users, clients, ips")
        if _KINDS[kind] is not ResourceType.TOPIC and name and not name.isdecimal():
            raise UsageRefused(f"{name!r} is not a broker's number")
        if _KINDS[kind] is ResourceType.TOPIC and name == "":
            raise UsageRefused("topics have no default entity; change the brokers' default")
        return cls(_KINDS[kind], name)

    @property
    def title(self) -> str:
        """As in ``configs for topic orders are``."""
        return f"{self.kind.name.lower().replace('_', '-')} {self.name}"


def named(kinds: list[str], names: list[str], is_default: bool) -> list[tuple[str, str | None]]:
    """The entities of ``--entity-type``, each with its name: "" is the default, None stands for each one."""
    if is_default and names and len(kinds) > 1:
        raise UsageRefused("say --user-defaults or --client-defaults where the other has a name")
    if len(names) > len(kinds):
        raise UsageRefused("each --entity-name needs its --entity-type")
    rest = "" if is_default else None
    return [(kind, names[number] if number < len(names) else rest) for number, kind in enumerate(kinds)]


def parse_added(text: str) -> dict[str, str]:
    """``a=1,b=[x,y]``."""
    added: dict[str, str] = {}
    position = 0
    while position < len(text):
        found = _PAIR.match(text, position)
        if found is None:
            raise UsageRefused(f"--add-config {text!r} is not of the form k1=v1,k2=[v1,v2]")
        added[found[1]] = found[2] if found[2] is not None else found[3].strip()
        position = found.end()
    return added


def describe(client: Client, entity: Entity, shows_all: bool, output: Output) -> None:
    """One entity's settings, or those of each."""
    names = [entity.name] if entity.name is not None else _names(client, entity.kind)
    rows: list[dict[str, Any]] = []
    for name in names:
        one = Entity(entity.kind, name)
        found = _wanted(client, one, shows_all)
        if output is Output.TABLE:
            typer.echo(_headline(one, shows_all))
            for config in found:
                typer.echo(f"  {config_line(config)}")
        rows += [
            dict(
                zip(
                    COLUMNS,
                    (
                        one.kind.name.lower(),
                        name,
                        config.name,
                        config.value,
                        SOURCES.get(config.config_source, "UNKNOWN"),
                        config.is_sensitive,
                    ),
                    strict=True,
                )
            )
            for config in found
        ]
    if output is not Output.TABLE:
        print_rows(rows, output, COLUMNS)


def config_line(config: DescribeConfigsResourceResult) -> str:
    """A setting and where its value comes from."""
    synonyms = ", ".join(
        f"{SOURCES.get(row.source, 'UNKNOWN')}:{row.name}={_null(row.value)}" for row in config.synonyms
    )
    sensitive = "true" if config.is_sensitive else "false"
    return f"{config.name}={_null(config.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _headline(entity: Entity, shows_all: bool) -> str:
    if entity.name == "":
        return "Default configs for brokers in the cluster are:"
    return f"{'All' if shows_all else 'Dynamic'} configs for {entity.title} are:"


def _names(client: Client, kind: ResourceType) -> list[str]:
    if kind is ResourceType.TOPIC:
        return sorted(row.name for row in client.run(describe_topics).topics if row.name is not None)
    numbers = [str(number) for number in sorted(client.engine.metadata.brokers)]
    return [*numbers, ""] if kind is ResourceType.BROKER else numbers


def _wanted(client: Client, entity: Entity, shows_all: bool) -> list[DescribeConfigsResourceResult]:
    if entity.kind is not ResourceType.TOPIC and entity.name:
        live = client.engine.metadata.brokers
        if int(entity.name) not in live:
            raise CommandRefused(f"there is no live broker {entity.name}; alive are {joined(sorted(live))}")
    (row,) = client.run(describe_configs, [(entity.kind, entity.name or "")], include_synonyms=True)
    if row.error_code:
        raise CommandRefused(f"{entity.title}: {reason(row.error_code, row.error_message)}")
    dynamic = {
        ResourceType.TOPIC: 1,
        ResourceType.BROKER: 2 if entity.name else 3,
        ResourceType.BROKER_LOGGER: 6,
    }[entity.kind]
    return sorted(
        (
            config
            for config in row.configs
            if shows_all or config.config_source == dynamic or _has(config, dynamic)
        ),
        key=lambda config: config.name,
    )


def _has(config: DescribeConfigsResourceResult, source: int) -> bool:
    return any(synonym.source == source for synonym in config.synonyms)


def alter(client: Client, entity: Entity, added: dict[str, str], deleted: list[str]) -> None:
    """Change settings; what is to be removed must be there."""
    if entity.name is None:
        raise UsageRefused("--alter needs --entity-name or --entity-default")
    if entity.kind is ResourceType.TOPIC:
        row = client.run(describe_topics, [entity.name]).topics[0]
        if row.error_code:
            raise CommandRefused(f"topic {entity.name}: {reason(row.error_code)}")
    there = {config.name for config in _wanted(client, entity, shows_all=False)} if deleted else set()
    missing = [name for name in deleted if name not in there]
    if missing:
        raise CommandRefused(f"Invalid config(s): {','.join(missing)}; they are not set on {entity.title}")
    changes = {
        **{name: (ConfigOperation.SET, value) for name, value in added.items()},
        **dict.fromkeys(deleted, (ConfigOperation.DELETE, None)),
    }
    for answer in client.run(alter_configs, {(entity.kind, entity.name): changes}):
        if answer.error_code:
            raise CommandRefused(f"{entity.title}: {reason(answer.error_code, answer.error_message)}")
    if entity.name == "":
        typer.echo("Completed updating default config for brokers in the cluster.")
    else:
        typer.echo(f"Completed updating config for {entity.title}.")


def _null(value: str | None) -> str:
    return "null" if value is None else value
