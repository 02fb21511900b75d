"""``ottla explain``: a partition's history, and why it is led by whom."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.shared.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputOption,
)
from ottla.cli.shared.refusal import CommandRefused, UsageRefused

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.cli.inspect.unstable import Holder
    from ottla.client.blocking.client import Client
    from ottla.client.blocking.consumer import Consumer
    from ottla.insight.picture import PartitionNow
    from ottla.model.ids import TopicPartition

app = typer.Typer(add_completion=False)

READ_MS_MAX = 15_000
UNTOLD_SECONDS = 2.0
"""How long to wait for the record of the last election: it is written after the election."""
LOOK_SECONDS = 0.1


PrincipalAsked = Annotated[
    str, typer.Option(metavar="TYPE:NAME", help="Whether this principal may do something, and why.")
]
OperationAsked = Annotated[str, typer.Option(metavar="NAME", help="With --principal: read, write, …")]
TopicAsked = Annotated[str, typer.Option(metavar="NAME", help="With --principal: a topic.")]
GroupAsked = Annotated[str, typer.Option(metavar="NAME", help="With --principal: a group.")]
TransactionAsked = Annotated[str, typer.Option(metavar="NAME", help="With --principal: such an id.")]
ClusterAsked = Annotated[bool, typer.Option("--cluster", help="With --principal: the cluster.")]
HostAsked = Annotated[str, typer.Option(metavar="ADDRESS", help="With --principal: from there.")]


@app.command()
def explain(
    partition: Annotated[
        str, typer.Argument(metavar="[TOPIC-PARTITION]", help="For example orders-0.", show_default=False)
    ] = "",
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    isr: Annotated[bool, typer.Option("--isr", help="Also tell changes of the ISR alone.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Short for --output json.")] = False,
    principal: PrincipalAsked = "",
    operation: OperationAsked = "",
    topic: TopicAsked = "",
    group: GroupAsked = "",
    transactional_id: TransactionAsked = "",
    cluster: ClusterAsked = False,
    host: HostAsked = "",
    command_config: CommandConfig = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Tell why a partition is led by whom, how that came about, and what if each of its replicas died.

    Each election is told with its rule, its candidates and its cause; unclean ones with what may be lost.
    Where an open transaction holds readers up, it is told whose it is, since when, and what ends it.

    Example: `ottla explain orders-0`. As CSV it is the table of what was recorded.

    With --principal: may somebody do that, by which rule, and which command would change it.
    For example `ottla explain --principal User:bob --topic orders --operation write`.
    """
    if principal:
        from ottla.cli.inspect.rights import explain_right

        named: dict[str, str | bool] = {
            "topic": topic,
            "group": group,
            "transactional-id": transactional_id,
            "cluster": cluster,
        }
        explain_right(bootstrap_server, command_config, principal, host, operation, named)
    else:
        _explain_partition(partition, bootstrap_server, command_config, Output.JSON if json_ else output, isr)


def _explain_partition(
    partition: str, bootstrap_server: str, command_config: "Path | None", output: Output, isr: bool
) -> None:
    import json
    from dataclasses import asdict

    from ottla.cli.inspect.unstable import find_holder
    from ottla.cli.shared.connection import connected
    from ottla.cli.shared.printing import print_rows
    from ottla.insight.history.losses import losses
    from ottla.insight.history.records import is_told
    from ottla.insight.history.story import preferred
    from ottla.insight.what_if import what_if
    from ottla.model.ids import TopicPartition

    topic, dash, number = partition.rpartition("-")
    if not dash or not topic or not number.isdecimal():
        raise UsageRefused(f"{partition!r} names no partition; write it as orders-0")
    name = TopicPartition(topic, int(number))
    with connected(bootstrap_server, command_config) as client:
        now, history = _told(client, name)
        holder = find_holder(client, name, now.leader) if now.has_leader else None
    if output is Output.CSV:
        print_rows(history, output)
        return
    if output is Output.JSON:
        told = {
            "partition": partition,
            "leader": now.leader,
            "leader_epoch": now.leader_epoch,
            "replicas": now.replicas,
            "isr": now.isr,
            "is_preferred": now.leader == now.replicas[0],
            "preferred": preferred(now),
            "is_told": is_told(now, history),
            "last_stable_offset_held_by": None if holder is None else asdict(holder),
            "losses": [asdict(loss) for loss in losses(history)],
            "history": history,
            "what_if": {str(broker): words for broker, words in what_if(now).items()},
        }
        typer.echo(json.dumps(told, indent=2))
        return
    typer.echo("\n".join(_story_lines(now, history, holder, with_isr=isr)))


def _story_lines(
    now: "PartitionNow", history: list[dict[str, Any]], holder: "Holder | None", *, with_isr: bool
) -> list[str]:
    from ottla.cli.inspect.unstable import holder_lines
    from ottla.insight.history.story import history_lines, now_lines
    from ottla.insight.what_if import what_if

    lines = [*now_lines(now, history), *(holder_lines(holder) if holder is not None else ())]
    lines += ["", "history (UTC)"]
    lines += history_lines(history, with_isr=with_isr) or ["  nothing is recorded in __ottla_decisions"]
    lines += ["", "what if it died"]
    return lines + [f"  broker {broker}: {words}" for broker, words in what_if(now).items()]


def _told(client: "Client", name: "TopicPartition") -> "tuple[PartitionNow, list[dict[str, Any]]]":
    """A partition's state and history; the last election may be recorded a moment later."""
    import time

    from ottla.insight.history.records import is_told

    deadline = time.monotonic() + UNTOLD_SECONDS
    recorded = _Recorded(client, str(name))
    while True:
        now = _now(client, name)
        history = recorded.look()
        if is_told(now, history) or time.monotonic() >= deadline:
            return now, history
        time.sleep(LOOK_SECONDS)


def _now(client: "Client", name: "TopicPartition") -> "PartitionNow":
    from ottla.client.admin.configs import ResourceType, describe_configs
    from ottla.client.admin.topics import describe_topics
    from ottla.insight.picture import PartitionNow

    response = client.run(describe_topics, [name.topic])
    rows = [row for row in response.topics[0].partitions if row.partition_index == name.partition]
    if response.topics[0].error_code or not rows:
        raise CommandRefused(f"there is no partition {name}; see `ottla topics --describe`")
    (settings,) = client.run(describe_configs, [(ResourceType.TOPIC, name.topic)])
    values = {config.name: config.value for config in settings.configs}
    return PartitionNow(
        str(name),
        rows[0].leader_id,
        rows[0].leader_epoch,
        rows[0].replica_nodes,
        rows[0].isr_nodes,
        frozenset(broker.node_id for broker in response.brokers),
        int(values.get("min.insync.replicas") or 1),
        values.get("unclean.leader.election.enable") == "true",
    )


class _Recorded:
    """All that ``__ottla_decisions`` says of a partition; a second look reads only what is new."""

    def __init__(self, client: "Client", partition: str) -> None:
        self._client = client
        self._partition = partition
        self._consumer: Consumer | None = None
        self._found: list[dict[str, Any]] = []

    def look(self) -> list[dict[str, Any]]:
        """The records of the topic's present life, oldest first."""
        import json

        from ottla.broker.decisions.records import TRANSACTION_KEY
        from ottla.cli.shared.offsets import offsets_at
        from ottla.insight.history.records import this_life
        from ottla.model.ids import TopicPartition
        from ottla.model.internal_topics import DECISIONS_TOPIC
        from ottla.model.timestamps import EARLIEST, LATEST

        log = TopicPartition(DECISIONS_TOPIC, 0)
        end = offsets_at(self._client, {log: LATEST}).get(log, 0)
        if self._consumer is None:
            if offsets_at(self._client, {log: EARLIEST}).get(log, 0) >= end:
                return []
            self._consumer = self._client.consumer(max_poll_records=5_000)
            self._consumer.assign({log: EARLIEST})
        while (self._consumer.position(log) or 0) < end:
            records = self._consumer.poll(READ_MS_MAX).get(log)
            if not records:
                raise CommandRefused(f"{DECISIONS_TOPIC} could not be read to its end; try again")
            for record in records:
                key = record.key or b""
                is_transaction = key.startswith(TRANSACTION_KEY.encode())
                if record.value is not None and (is_transaction or key == self._partition.encode()):
                    told = json.loads(record.value)
                    if not is_transaction or self._partition in told["partitions"]:
                        self._found.append(told)
        return this_life(self._found)
