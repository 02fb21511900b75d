"""``make docs``: writes the generated pages under ``docs/reference``; ``--check`` says which are stale."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer

from ottla.broker.apis import APIS, Api
from ottla.broker.gauges import METRICS
from ottla.cli.main import COMMANDS, app
from ottla.config.definitions import broker_settings, topic_settings
from ottla.config.setting import Setting, text_of
from ottla.wire.keys import ApiKey

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
NOTE = "<!-- Written by tools/docs.py (make docs); do not edit. -->"


def cli_page() -> Iterator[str]:
    """Every command and every option."""
    yield "# The command line"
    group = typer.main.get_command(app)
    context = typer.Context(group)
    for name in COMMANDS:
        command = group.get_command(context, name)  # type: ignore[attr-defined]
        yield from command_lines(command, f"## ottla {name}")


def command_lines(command: Any, title: str) -> Iterator[str]:
    """A command's purpose and options, or its own commands."""
    paragraphs = (command.help or "").split("\n\n")
    shown = [" ".join(text[1:].split()) if text.startswith("\b") else text for text in paragraphs]
    yield f"\n{title}\n\n{(chr(10) * 2).join(shown).strip()}\n"
    below = getattr(command, "commands", {})
    for name, inner in below.items():
        yield from command_lines(inner, f"#{title} {name}")
    if below:
        return
    yield "| Option | Default | Meaning |\n|---|---|---|"
    for parameter in command.params:
        if parameter.name in ("help", "install_completion", "show_completion"):
            continue
        label = ", ".join(parameter.opts) or parameter.name
        unsaid = parameter.required or parameter.default is None or parameter.default is False
        default = "" if unsaid else str(parameter.default)
        yield f"| `{label}` | {cell(default, code=True)} | {cell(getattr(parameter, 'help', '') or '')} |"


def apis_page() -> Iterator[str]:
    """Every API of a Kafka 3.9 broker: its versions there, and what an Ottla broker makes of it."""
    answered = {api.key: api for api in APIS}
    refused = [api for api in APIS if is_refused(api)]
    yield "# The APIs that a broker speaks\n"
    yield f"Of the {len(ApiKey)} APIs of a Kafka 3.9 broker in ZooKeeper mode Ottla serves"
    yield f"{len(answered) - len(refused)}, and {len(refused)} it understands and refuses by name.\n"
    yield "| Key | API | Kafka 3.9 | Ottla | |\n|---|---|---|---|---|"
    for key in sorted(ApiKey):
        name = "".join(word.capitalize() for word in key.name.split("_"))
        module = importlib.import_module(f"ottla.wire.apis.{key.name.lower()}")
        low, high = getattr(module, f"{name}Request").spec.versions
        api = answered.get(key)
        ours = "-" if api is None else f"{api.min_version} to {api.max_version}"
        standing = "not spoken" if api is None else "refused" if is_refused(api) else "served"
        yield f"| {int(key)} | {name} | {low} to {high} | {ours} | {standing} |"


def is_refused(api: Api) -> bool:
    """Whether a broker answers only why it does not do that."""
    api.load()
    return api.handle.__module__.endswith("_refused")


def settings_page() -> Iterator[str]:
    """Every setting of brokers and topics."""
    yield "# Settings\n\nNames, types and defaults are Kafka's; *standing* says what Ottla makes of each."
    for title, settings in (("Broker", broker_settings()), ("Topic", topic_settings())):
        yield f"\n## {title} settings\n"
        yield "| Setting | Type | Default | Standing | Meaning |\n|---|---|---|---|---|"
        for name in sorted(settings):
            yield setting_row(settings[name])


def setting_row(setting: Setting) -> str:
    """One line of the table."""
    default = cell(text_of(setting.default) or "", code=True)
    columns = [f"`{setting.name}`", setting.type.name.lower(), default]
    return f"| {' | '.join([*columns, setting.standing.value, cell(setting.doc)])} |"


def metrics_page() -> Iterator[str]:
    """Every metric of a broker."""
    yield "# Metrics\n\nShown at `/metrics` where `ottla.metrics.listener` says so; meanings are Kafka's.\n"
    yield "| Metric | Type | Meaning |\n|---|---|---|"
    for metric in METRICS:
        yield f"| `{metric.name}` | {metric.kind} | {cell(metric.help)} |"


def cell(text: str, code: bool = False) -> str:
    """Text that keeps a table whole."""
    flat = " ".join(text.split()).replace("|", "\\|")
    return f"`{flat}`" if code and flat else flat


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "cli.md": cli_page,
    "apis.md": apis_page,
    "settings.md": settings_page,
    "metrics.md": metrics_page,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` compare them with what is there."""
    stale = []
    for name, page in PAGES.items():
        text = "\n".join([NOTE, *page()]) + "\n"
        file = REFERENCE / name
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            REFERENCE.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    if "--check" in arguments and stale:
        print(f"docs/reference is stale: {', '.join(stale)}; run make docs")
        return 1
    print(f"docs/reference: {len(stale)} written, {len(PAGES) - len(stale)} current")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
