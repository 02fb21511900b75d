"""``ottla preferred-replica-election``: the old tool that asks the controller by way of a znode."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.shared.options import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, Output, OutputOption
from ottla.cli.shared.refusal import CommandRefused, UsageRefused

if TYPE_CHECKING:
    from ottla.model.ids import TopicPartition
    from ottla.server.zookeeper.blocking import BlockingZooKeeper

app = typer.Typer(add_completion=False)


@app.command()
def preferred_replica_election(
    zookeeper: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT/CHROOT",
            help="Ask through the znode /admin/preferred_replica_election; `ottla status` shows the address.",
        ),
    ] = None,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,...",
            help="Ask the controller itself. If neither is given: OTTLA_BOOTSTRAP_SERVER, else the cluster of"
            " `ottla up` here, else 127.0.0.1:9092.",
        ),
    ] = None,
    path_to_json_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='A file like {"partitions": [{"topic": "foo", "partition": 1}]}; else all partitions.',
        ),
    ] = None,
    admin_config: Annotated[
        Path | None, typer.Option("--admin.config", metavar="FILE", help="A property file for the client.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Give partitions back to their preferred leader, the first of their replicas.

    Example: `ottla preferred-replica-election --zookeeper 127.0.0.1:2181` (`ottla status` shows the address).
    """
    if zookeeper is not None and bootstrap_server is not None:
        raise UsageRefused("--zookeeper and --bootstrap-server contradict each other: leave one out")

    import os

    from ottla.cli.shared.json_files import partition_rows

    wanted = None
    if path_to_json_file is not None:
        wanted = [name for name, _ in partition_rows(path_to_json_file)]
    if zookeeper is not None:
        from ottla.cli.shared.zookeeper import zookeeper_session

        with zookeeper_session(zookeeper) as session:
            _ask_by_znode(session, wanted, output)
        return

    from ottla.cli.shared.connection import connected
    from ottla.cli.tools.reassign.leader_election import ElectionType, elect

    servers = bootstrap_server or os.environ.get(BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP)
    with connected(servers, admin_config) as client:
        elect(client, wanted, ElectionType.PREFERRED, output, what="preferred replica election")


def _ask_by_znode(
    session: "BlockingZooKeeper", wanted: "list[TopicPartition] | None", output: Output
) -> None:
    from ottla.cli.shared.printing import print_rows
    from ottla.model.ids import TopicPartition
    from ottla.server.zookeeper.blocking import ZooKeeperRefused
    from ottla.znodes.codec import decode_partitions, decode_topic, encode_partitions
    from ottla.znodes.paths import PREFERRED_REPLICA_ELECTION, TOPICS, topic
    from ottla.zookeeper.ops import ZkCode

    known = [
        TopicPartition(name, number)
        for name in session.children(TOPICS)
        for number in decode_topic(name, session.get(topic(name)).data).partitions
    ]
    missing = sorted(set(wanted or ()) - set(known))
    if missing:
        raise CommandRefused(f"there is no partition {', '.join(map(str, missing))}; nothing was asked for")
    partitions = sorted(wanted or known)
    if not partitions:
        raise CommandRefused("the cluster has no partitions")
    try:
        session.create(PREFERRED_REPLICA_ELECTION, encode_partitions(partitions))
    except ZooKeeperRefused as refused:
        if refused.code is not ZkCode.NODE_EXISTS:
            raise
        under_way = decode_partitions(session.get(PREFERRED_REPLICA_ELECTION).data)
        raise CommandRefused(
            "Preferred replica leader election currently in progress for"
            f" {', '.join(map(str, under_way))}. Aborting operation"
        ) from None
    if output is not Output.TABLE:
        print_rows([{"partition": str(name), "outcome": "asked for"} for name in partitions], output)
        return
    names = ",".join(map(str, partitions))
    typer.echo(f"Created preferred leader election path with {names}")
    typer.echo(f"Successfully started preferred replica election for partitions {names}")
