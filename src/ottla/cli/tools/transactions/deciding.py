"""``ottla transactions list-prepared``, ``complete``, ``force-terminate``: for whoever should decide."""

import typer

from ottla.cli.shared.options import Output
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.tools.transactions.show import now_ms, print_table
from ottla.client.admin.asking import ask_all
from ottla.client.admin.topics import describe_topics
from ottla.client.admin.transactions import describe_transaction, is_prepared, keeps_prepared, list_prepared
from ottla.client.blocking.client import Client
from ottla.client.errors import BrokerError
from ottla.client.producing.prepared import Prepared
from ottla.insight.wording import joined
from ottla.model.errors import ErrorCode
from ottla.model.internal_topics import TRANSACTIONS_TOPIC
from ottla.model.spread import coordinating_partition
from ottla.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.connection import SOFTWARE_NAME, SOFTWARE_VERSION

COLUMNS = (
    "TransactionalId",
    "Coordinator",
    "ProducerId",
    "ProducerEpoch",
    "StartTimeMs",
    "DurationMs",
    "TopicPartitions",
)


def list_them(client: Client, output: Output) -> None:
    """One row each, the oldest first: readers of committed records wait for it."""
    found = client.run(list_prepared)
    rows = [
        (
            each.transactional_id,
            broker,
            each.producer_id,
            each.producer_epoch,
            each.transaction_start_time_ms,
            now_ms() - each.transaction_start_time_ms,
            joined([f"{topic.topic}-{index}" for topic in each.topics for index in topic.partitions]),
        )
        for broker, each in found
    ]
    print_table(COLUMNS, rows, output)
    if found:
        _warn_of_successors(client, [each.transactional_id for _, each in found])


def _warn_of_successors(client: Client, transactional_ids: list[str]) -> None:
    """Brokers that may coordinate these ids next and would not keep what is prepared."""
    (topic,) = client.run(describe_topics, [TRANSACTIONS_TOPIC]).topics
    replicas = {row.partition_index: row.replica_nodes for row in topic.partitions}
    hello = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
    unfit = {
        broker
        for broker, answer in client.run(ask_all, hello, ApiVersionsResponse).items()
        if not keeps_prepared(answer)
    }
    for name in transactional_ids:
        number = coordinating_partition(name, len(replicas))
        if next_ones := unfit.intersection(replicas.get(number, ())):
            typer.echo(
                f"warning: '{name}' must not be coordinated by broker {joined(sorted(next_ones))}, which"
                " keeps no prepared transactions:"
                f" take it out of the replicas of {TRANSACTIONS_TOPIC}-{number}",
                err=True,
            )


def complete(client: Client, transactional_id: str, expected: Prepared | None, *, commit: bool) -> None:
    """Commit or abort it. One that is not prepared belongs to its producer, and is left alone."""
    try:
        described = client.run(describe_transaction, transactional_id)
    except BrokerError as error:
        if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        described = None
    if described is None or not is_prepared(described):
        state = "unknown" if described is None else described.transaction_state
        raise CommandRefused(
            f"transactional id '{transactional_id}' has no prepared transaction (state: {state});"
            " see `ottla transactions list-prepared`"
        )
    found = Prepared(described.producer_id, described.producer_epoch)
    if expected not in (None, found):
        raise CommandRefused(
            f"transactional id '{transactional_id}' has prepared {found}, not {expected}: nothing is changed"
        )
    producer = client.producer(transactional_id=transactional_id)
    producer.init_transactions(keep_prepared=True)
    if producer.prepared != found:
        raise CommandRefused(
            f"transaction {found} of '{transactional_id}' was ended by somebody else meanwhile"
        )
    producer.complete_transaction(found) if commit else producer.abort_transaction()
    typer.echo(f"transaction {found} of '{transactional_id}' is {'committed' if commit else 'aborted'}")


def force_terminate(client: Client, transactional_id: str) -> None:
    """Abort whatever is open, and fence the producer."""
    client.producer(transactional_id=transactional_id).init_transactions()
