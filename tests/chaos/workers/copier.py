"""Consumes, transforms, produces: copies each record to the same partition of another topic.

A copier that fails begins again behind what its group has committed; one that was replaced ends.
"""

from __future__ import annotations

from chaos.history import HistoryFile
from chaos.workers.common import Orders, Task
from ottla.client.blocking.client import Client
from ottla.client.blocking.group import GroupConsumer
from ottla.client.config import ClientConfig, ConsumerConfig, parse_bootstrap_servers
from ottla.client.errors import AbortableError, ClientError, ProducerFenced, TimedOut
from ottla.client.group.config import MembershipConfig
from ottla.model.ids import TopicPartition
from ottla.records.record import Record

POLL_MS = 200
RECORDS_MAX = 300
TIMEOUT_MS = 6_000
SESSION_MS = 6_000


class Copier:
    """One process with a transactional id, and its history."""

    def __init__(self, task: Task, client: Client) -> None:
        self._task = task
        self._client = client
        self._history = HistoryFile(task.directory, task.name)
        self._producer = client.producer(
            transactional_id=str(task.options["transactional_id"]),
            transaction_timeout_ms=TIMEOUT_MS,
            max_block_ms=10_000,
            linger_ms=5,
        )
        self._consumer = self._join()
        self._copied = 0

    def run(self, orders: Orders) -> None:
        try:
            self._until_done(self._producer.init_transactions)
            while not orders.is_asked_to_stop:
                self._copy()
            self._consumer.close()
        except ProducerFenced as error:
            self._history.write("fenced", why=str(error))
        except ClientError as error:
            self._history.write("broke", why=f"{type(error).__name__}: {error}")
        self._history.write("finished", copied=self._copied)
        self._history.close()

    def _join(self) -> GroupConsumer:
        config = ConsumerConfig(auto_offset_reset="earliest", isolation_level="read_committed")
        membership = MembershipConfig(
            session_timeout_ms=SESSION_MS, heartbeat_interval_ms=1_000, enable_auto_commit=False
        )
        group = str(self._task.options["group"])
        return self._client.group_consumer(group, [self._task.topic], config, membership)

    def _until_done(self, step) -> None:  # type: ignore[no-untyped-def]
        """After ``TimedOut`` the same call goes on where it was."""
        while True:
            try:
                step()
            except TimedOut as error:
                self._history.write("complained", why=str(error))
            else:
                return

    def _copy(self) -> None:
        try:
            taken = self._consumer.poll(POLL_MS, RECORDS_MAX)
        except ClientError as error:
            self._begin_again(error)
            return
        if not taken:
            return
        self._producer.begin_transaction()
        try:
            self._fill(taken)
            self._until_done(self._producer.commit_transaction)
        except AbortableError as error:
            self._until_done(self._producer.abort_transaction)
            self._begin_again(error)
        else:
            self._copied += sum(map(len, taken.values()))

    def _fill(self, taken: dict[TopicPartition, list[Record]]) -> None:
        positions = {each: at for each, at in self._consumer.positions().items() if each in taken}
        try:
            member = self._consumer.group_metadata()
        except ClientError as error:
            raise AbortableError("poll", error) from error
        target = str(self._task.options["target"])
        for partition, records in taken.items():
            for record in records:
                self._producer.send(target, record.value, partition=partition.partition)
        self._until_done(lambda: self._producer.send_offsets_to_transaction(positions, member))

    def _begin_again(self, why: ClientError) -> None:
        """What was taken since the last commit was not copied: join again, and read on from that commit."""
        self._history.write("complained", why=str(why))
        self._history.flush()
        try:
            self._consumer.close()
        except ClientError as error:
            self._history.write("complained", why=str(error))
        self._consumer = self._join()


def work(task: Task, orders: Orders) -> None:
    config = ClientConfig(
        bootstrap_servers=parse_bootstrap_servers(task.bootstrap),
        client_id=task.name,
        request_timeout_ms=10_000,
        metadata_max_age_ms=5_000,
        retry_backoff_ms=50,
        retry_backoff_max_ms=500,
        reconnect_backoff_ms=50,
        reconnect_backoff_max_ms=500,
        socket_connection_setup_timeout_ms=2_000,
    )
    with Client(config) as client:
        Copier(task, client).run(orders)
