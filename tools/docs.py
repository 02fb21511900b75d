"""``make docs``: writes the generated pages under ``docs/reference``; ``--check`` says which are stale."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import typer

from ottla.broker.apis import APIS
from ottla.cli.main import COMMANDS, app
from ottla.config.definitions import broker_settings, topic_settings
from ottla.config.setting import Setting, text_of

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
        yield f"\n## ottla {name}\n\n{(command.help or '').strip()}\n"
        yield "| Option | Default | Meaning |\n|---|---|---|"
        for parameter in command.params:
            if parameter.name in ("help", "install_completion", "show_completion"):
                continue
            label = ", ".join(parameter.opts) or parameter.name
            unsaid = parameter.required or parameter.default is None or parameter.default is False
            default = "" if unsaid else str(parameter.default)
            yield f"| `{label}` | {cell(default, code=True)} | {cell(getattr(parameter, 'help', '') or '')} |"


def apis_page() -> Iterator[str]:
    """Every API that a broker answers, with its versions."""
    yield "# The APIs that a broker speaks\n"
    yield "| Key | API | Versions |\n|---|---|---|"
    for api in sorted(APIS, key=lambda api: api.key):
        name = "".join(word.capitalize() for word in api.key.name.split("_"))
        yield f"| {int(api.key)} | {name} | {api.min_version} to {api.max_version} |"


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


def cell(text: str, code: bool = False) -> str:
    """Text that keeps a table whole."""
    flat = " ".join(text.split()).replace("|", "\\|")
    return f"`{flat}`" if code and flat else flat


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "cli.md": cli_page,
    "apis.md": apis_page,
    "settings.md": settings_page,
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
