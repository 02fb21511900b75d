"""Options that many commands have, and how their values are parsed."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.shared.refusal import CommandRefused, UsageRefused

DEFAULT_BOOTSTRAP = ""
"""The cluster of `ottla up` in this directory if one runs, else Kafka's usual port on this machine."""

BOOTSTRAP_VARIABLE = "OTTLA_BOOTSTRAP_SERVER"
BootstrapServer = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        envvar=BOOTSTRAP_VARIABLE,
        help="Brokers to ask first; else the cluster of `ottla up` here, else 127.0.0.1:9092.",
        show_default=False,
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option("--command-config", metavar="FILE", help="A property file with settings of the client."),
]

EpochFrom = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT/CHROOT",
        help="Where to read the controller's epoch; else from the cluster of `ottla up` here.",
    ),
]


class Output(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


OutputOption = Annotated[
    Output, typer.Option("--output", help="Kafka's own columns, or rows for other programs.")
]


COMMON_OPTIONS = ("--bootstrap-server", "--command-config", "--output")


def is_given(value: object) -> bool:
    """Whether an option was used: 0 is a value, though it equals ``False``."""
    return value is not None and value is not False and value not in ([], ())


def exactly_one(actions: dict[str, object]) -> str:
    """The one flag that was given; anything else is refused."""
    given = [flag for flag, value in actions.items() if value]
    if len(given) != 1:
        raise UsageRefused(f"exactly one action is needed: {', '.join(actions)}; see --help")
    return given[0]


def only_with(action: str, allowed: Iterable[str], options: dict[str, object]) -> None:
    """Refuse options that mean nothing for the action."""
    accepted = set(allowed)
    for flag, value in options.items():
        if is_given(value) and flag not in accepted:
            raise UsageRefused(f"{flag} cannot be used with {action}; see --help")


def given_options(ctx: typer.Context) -> dict[str, object]:
    """The options on the command line, by their flags."""
    return {
        option.opts[0]: ctx.params[option.name]
        for option in ctx.command.params
        if option.name in ctx.params and _is_typed(ctx, option.name)
    }


def _is_typed(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def chosen_action(
    ctx: typer.Context, allowed: Mapping[str, Iterable[str]], with_every_action: Iterable[str] = ()
) -> str:
    """The one action on the command line; refuses options that mean nothing for it."""
    given = given_options(ctx)
    action = exactly_one({flag: given.get(flag, False) for flag in allowed})
    only_with(action, {action, *allowed[action], *COMMON_OPTIONS, *with_every_action}, given)
    return action


def key_values(flag: str, items: Iterable[str], *, keeps_blanks: bool = False) -> dict[str, str]:
    """``name=value`` items; the value may hold further ``=``, and blanks around it if it is a separator."""
    pairs: dict[str, str] = {}
    for item in items:
        name, separator, value = item.partition("=")
        if not separator or not name.strip():
            raise UsageRefused(f"{flag} {item!r} is not of the form name=value")
        pairs[name.strip()] = value if keeps_blanks else value.strip()
    return pairs


def pattern(flag: str, text: str) -> re.Pattern[str]:
    """A regular expression for whole names; a comma means *or*, as in Kafka's tools."""
    cleaned = text.strip().strip("\"'").replace(",", "|")
    try:
        return re.compile(cleaned)
    except re.error as error:
        raise UsageRefused(f"{flag} {text!r} is not a regular expression: {error}") from None


def numbers(flag: str, text: str) -> list[int]:
    """``0,1,2`` as numbers."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageRefused(f"{flag} {text!r} is not a list of numbers like 0,1,2") from None


def read_text(path: Path) -> str:
    """A file the user named."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandRefused(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CommandRefused(f"{path} is not UTF-8 text") from None


def read_properties(path: Path) -> dict[str, str]:
    """A property file in Java's format; values keep the blanks at their end, which may be separators."""
    from ottla.config.properties import parse_properties

    return parse_properties(read_text(path))


def read_settings(path: Path | None) -> dict[str, str]:
    """A property file of settings, where blanks at the end mean nothing; none without a path."""
    return {} if path is None else {name: value.strip() for name, value in read_properties(path).items()}
