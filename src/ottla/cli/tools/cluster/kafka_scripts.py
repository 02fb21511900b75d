"""``ottla kafka-scripts``: Kafka's script names for programs that know only those."""

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.shared.refusal import CommandRefused

app = typer.Typer(add_completion=False)

SCRIPTS = {
    "kafka-topics.sh": "topics",
    "kafka-configs.sh": "configs",
    "kafka-acls.sh": "acls",
    "kafka-console-producer.sh": "console-producer",
    "kafka-console-consumer.sh": "console-consumer",
    "kafka-consumer-groups.sh": "consumer-groups",
    "kafka-transactions.sh": "transactions",
    "kafka-get-offsets.sh": "get-offsets",
    "kafka-leader-election.sh": "leader-election",
    "kafka-preferred-replica-election.sh": "preferred-replica-election",
    "kafka-reassign-partitions.sh": "reassign-partitions",
    "kafka-delete-records.sh": "delete-records",
    "kafka-log-dirs.sh": "log-dirs",
    "kafka-dump-log.sh": "dump-log",
    "kafka-broker-api-versions.sh": "broker-api-versions",
    "kafka-replica-verification.sh": "replica-verification",
    "kafka-producer-perf-test.sh": "perf produce",
    "kafka-consumer-perf-test.sh": "perf consume",
    "kafka-cluster.sh": "",
    "kafka-server-start.sh": "broker",
    "zookeeper-server-start.sh": "zookeeper",
    "zookeeper-shell.sh": "zookeeper-shell",
}
"""The command of each; ``kafka-cluster.sh cluster-id`` names its command itself."""

STOPPING = {
    "kafka-server-stop.sh": (" -m ottla[.]server ", "kafka"),
    "zookeeper-server-stop.sh": ("(ottla[.]cli[.]main|/ottla) zookeeper( |$)", "zookeeper"),
}
"""How the processes are known that each ends, and what it calls them. A guard's words name what it guards."""
_STOP = """\
PIDS=$(ps ax -o pid= -o args= | grep -E '{known}' | grep -v -e guard.py -e grep | awk '{{print $1}}')
if [ -z "$PIDS" ]; then
  echo "No {what} server to stop"
  exit 1
fi
kill -s "${{SIGNAL:-TERM}}" $PIDS
"""


@app.command()
def kafka_scripts(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Where they are written; made if it is missing.")
    ],
) -> None:
    """Write kafka-topics.sh and its like, each calling the command of the same purpose.

    If one of these names is taken by a file that is not ours, nothing is written.

    Example: `ottla kafka-scripts bin`, then `bin/kafka-topics.sh --list`.
    """
    import shlex
    import sys

    mark = "# Written by ottla kafka-scripts."
    words = [shlex.quote(sys.executable), "-P", "-m", "ottla.cli.main"]
    texts = {
        name: f'#!/bin/sh\n{mark}\nexec {" ".join([*words, *command.split()])} "$@"\n'
        for name, command in SCRIPTS.items()
    }
    for name, (known, what) in STOPPING.items():
        texts[name] = f"#!/bin/sh\n{mark}\n{_STOP.format(known=known, what=what)}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        foreign = [n for n in texts if (directory / n).exists() and mark not in (directory / n).read_text()]
        if foreign:
            raise CommandRefused(f"{directory / foreign[0]} is not ours; choose another directory")
        for name, text in texts.items():
            (directory / name).write_text(text, encoding="utf-8")
            (directory / name).chmod(0o755)
    except OSError as error:
        raise CommandRefused(f"{directory} cannot be written: {error.strerror or error}") from None
    typer.echo(f"wrote {len(texts)} scripts to {directory}")
