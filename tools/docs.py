"""``make docs``: writes ``docs/reference`` and the tables in ``docs/proof.md``; ``--check`` compares."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer
from figures import tables

from ottla.broker.apis import APIS, Api
from ottla.broker.observed.gauges import METRICS
from ottla.broker.settings.resources import NOT_WHILE_RUNNING
from ottla.cli.main import COMMANDS, app
from ottla.config.definitions import broker_settings, dynamic_only_settings, topic_settings
from ottla.config.setting import Scope, Setting, Standing, text_of
from ottla.wire.keys import ApiKey
from ottla.wire.versions import API_VERSIONS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
NOTE = "<!-- Written by tools/docs.py (make docs); do not edit. -->"
END_NOTE = "<!-- End of what tools/docs.py writes. -->"


def cli_page() -> Iterator[str]:
    """Every command and every option."""
    yield "# The command line\n"
    yield "`ottla COMMAND --help` shows the same. An option that is *needed* has no default."
    group = typer.main.get_command(app)
    context = typer.Context(group)
    for name in COMMANDS:
        command = group.get_command(context, name)  # type: ignore[attr-defined]
        yield from command_lines(command, f"## ottla {name}", context)


def command_lines(command: Any, title: str, context: typer.Context) -> Iterator[str]:
    """A command's purpose and options, or its own commands."""
    paragraphs = (command.help or "").split("\n\n")
    shown = [" ".join(text[1:].split()) if text.startswith("\b") else text for text in paragraphs]
    yield f"\n{title}\n\n{(chr(10) * 2).join(shown).strip()}\n"
    below = getattr(command, "commands", {})
    for name, inner in below.items():
        yield from command_lines(inner, f"#{title} {name}", context)
    if below:
        return
    yield "| Option | Default | Meaning |\n|---|---|---|"
    for parameter in command.params:
        if parameter.name not in ("help", "install_completion", "show_completion"):
            columns = (option_label(parameter, context), option_default(parameter), option_meaning(parameter))
            yield f"| {' | '.join(columns)} |"
    if command.epilog:
        yield f"\n```\n{command.epilog.strip().replace(chr(10) * 2, chr(10))}\n```"


def option_label(parameter: Any, context: typer.Context) -> str:
    """The option as it is typed, with what stands behind it."""
    metavar = parameter.make_metavar(context)
    if parameter.param_type_name == "argument":
        return cell(metavar, code=True)
    names = " / ".join(", ".join(words) for words in (parameter.opts, parameter.secondary_opts) if words)
    return cell(names if parameter.is_flag else f"{names} {metavar}", code=True)


def option_default(parameter: Any) -> str:
    """What counts where it is not given; nothing for a flag that is off."""
    if parameter.required:
        return "needed"
    if parameter.default is True:
        return cell(parameter.opts[0], code=True)
    is_unsaid = parameter.default is None or parameter.default is False
    return cell("" if is_unsaid else str(parameter.default), code=True)


def option_meaning(parameter: Any) -> str:
    """Its help, and the variable that stands in for it."""
    variable = f" The variable `{parameter.envvar}` stands in for it." if parameter.envvar else ""
    return cell(parameter.help or "") + variable


def apis_page() -> Iterator[str]:
    """Every API of a Kafka 3.9 broker: its versions there, and what an Ottla broker makes of it."""
    answered = {api.key: api for api in APIS}
    refused = [api for api in APIS if is_refused(api)]
    yield "# The APIs that a broker speaks\n"
    yield f"Of the {len(ApiKey)} APIs of a Kafka 3.9 broker in ZooKeeper mode Ottla serves"
    yield f"{len(answered) - len(refused)}, and {len(refused)} it understands and refuses by name.\n"
    yield "*Rights* are what a client needs where an authorizer decides (see [ACLs](../operating/acls.md)).\n"
    yield "| Key | API | Kafka 3.9 | Ottla | | Rights |\n|---|---|---|---|---|---|"
    for key in sorted(ApiKey):
        low, high, _ = API_VERSIONS[key]
        api = answered.get(key)
        ours = "-" if api is None else f"{api.min_version} to {api.max_version}"
        standing = "not spoken" if api is None else "refused" if is_refused(api) else "served"
        needs = "" if api is None else api.needs
        yield f"| {int(key)} | {key.spelling} | {low} to {high} | {ours} | {standing} | {needs} |"


def is_refused(api: Api) -> bool:
    """Whether a broker answers only why it does not do that."""
    api.load()
    return api.handle.__module__.endswith(".refused")


def settings_page() -> Iterator[str]:
    """Every setting of brokers and topics."""
    yield SETTINGS_HEAD
    yield "\n## Broker settings\n"
    yield "| Setting | Type | Default | Standing | At run time | Meaning |\n|---|---|---|---|---|---|"
    brokers = broker_settings() | dynamic_only_settings()
    for name in sorted(brokers):
        yield setting_row(brokers[name], at_run_time(brokers[name]))
    yield "\n## Topic settings\n"
    yield "All of them can be changed at run time, with `ottla configs --alter --topic`.\n"
    yield "| Setting | Type | Default | Standing | Meaning |\n|---|---|---|---|---|"
    topics = topic_settings()
    for name in sorted(topics):
        yield setting_row(topics[name])


SETTINGS_HEAD = """# Settings

Names, types, limits and defaults are Kafka's; those that begin with `ottla.` are Ottla's own. *Standing* says
how Ottla treats each:

- *obeyed*: it does what Kafka documents, or what its meaning here says;
- *without effect*: accepted so that Kafka's files can be used as they are; the log names it where it is set;
- *unsupported*: it asks for something that Ottla does not do. Any value but the default is refused: a broker
  with such a file does not start, a topic is not created or changed.

*At run time* says whether `ottla configs --alter` can change it while brokers run: for *each* broker alone
(`--broker 0`), or also for *all* (`--broker-defaults`). An empty cell means that a restart is needed."""


def setting_row(setting: Setting, *more: str) -> str:
    """One line of the table."""
    default = cell(text_of(setting.default) or "", code=True)
    kind = cell(", ".join(filter(None, (setting.type.name.lower(), limits_text(setting.limits)))))
    columns = [f"`{setting.name}`", kind, default, setting.standing.value, *more, cell(setting.doc)]
    return f"| {' | '.join(columns)} |"


def limits_text(word: str) -> str:
    """What the tables allow, in words."""
    if word.startswith(">="):
        return f"{word[2:]} or more"
    if word.startswith("{"):
        return "of " + ", ".join(f"`{choice}`" for choice in word[1:-1].split(","))
    return word.replace("..", " to ")


def at_run_time(setting: Setting) -> str:
    """For whom a broker's setting can be changed while it runs."""
    if setting.name in dynamic_only_settings():
        return "each or all; not in the file"
    is_fixed = setting.name in NOT_WHILE_RUNNING or setting.standing is not Standing.OBEYED
    if is_fixed or setting.scope is Scope.READ_ONLY:
        return ""
    return "each or all" if setting.scope is Scope.CLUSTER_WIDE else "each"


METRICS_HEAD = """# Metrics

Shown at `/metrics` where `ottla.metrics.listener` says so; meanings are Kafka's. *By API* means a label
`request` with the API's name (`Produce`); a histogram also has `le`, the upper end of a bucket, in
milliseconds. Elections have a label `rule` with the rule that chose the leader.
"""


def metrics_page() -> Iterator[str]:
    """Every metric of a broker."""
    yield METRICS_HEAD
    yield "| Metric | Type | Meaning |\n|---|---|---|"
    for metric in METRICS:
        yield f"| `{metric.name}` | {metric.kind} | {cell(metric.help)} |"


def cell(text: str, code: bool = False) -> str:
    """Text that keeps a table whole."""
    flat = " ".join(text.split()).replace("|", "\\|")
    return f"`{flat}`" if code and flat else flat


def proof_page() -> str:
    """The page of figures, with its tables made again and the rest as it is."""
    head, _, rest = (DOCS / "proof.md").read_text(encoding="utf-8").partition(NOTE)
    return "\n".join([head + NOTE, *tables()]) + "\n\n" + END_NOTE + rest.partition(END_NOTE)[2]


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "cli.md": cli_page,
    "apis.md": apis_page,
    "settings.md": settings_page,
    "metrics.md": metrics_page,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` compare them with what is there."""
    texts = {f"reference/{name}": "\n".join([NOTE, *page()]) + "\n" for name, page in PAGES.items()}
    texts["proof.md"] = proof_page()
    stale = []
    for name, text in texts.items():
        file = DOCS / name
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    if "--check" in arguments and stale:
        print(f"stale under docs: {', '.join(stale)}; run make docs")
        return 1
    print(f"docs: {len(stale)} written, {len(texts) - len(stale)} current")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
