"""One conversation of a transactional producer with a broker, noted in words that two brokers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ottla.model.timestamps import LATEST
from ottla.records.batch import batches
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis import add_offsets_to_txn as ao
from ottla.wire.apis import add_partitions_to_txn as ap
from ottla.wire.apis import create_topics as ct
from ottla.wire.apis import delete_records as dr
from ottla.wire.apis import describe_producers as dp
from ottla.wire.apis import describe_transactions as dt
from ottla.wire.apis import end_txn as et
from ottla.wire.apis import fetch as fe
from ottla.wire.apis import init_producer_id as ip
from ottla.wire.apis import list_offsets as lo
from ottla.wire.apis import list_transactions as lt
from ottla.wire.apis import produce as pr
from ottla.wire.apis import txn_offset_commit as tc
from ottla.wire.apis import write_txn_markers as wm
from support.groups.conversation import Talk
from support.running.waiting import wait_until

Partitions = dict[str, tuple[int, ...]]
FETCH_VERSION = 11
NOW_MS = 1_700_000_000_000
ENDED = ("CompleteCommit", "CompleteAbort")


@dataclass(slots=True)
class Producer:
    """An id and an epoch."""

    producer_id: int = -1
    epoch: int = -1

    def older(self, by: int = 1) -> Producer:
        return Producer(self.producer_id, self.epoch - by)

    def newer(self, by: int = 1) -> Producer:
        return Producer(self.producer_id, self.epoch + by)

    def other(self) -> Producer:
        return Producer(self.producer_id + 1_000_000, self.epoch)


@dataclass(slots=True)
class TransactionTalk(Talk):
    """Given to a case: speaks as one producer, whose transactional id and group are the case's name.

    Producer ids are numbered in the order in which they appear, times are only there or not.
    """

    me: Producer = field(default_factory=Producer)
    _ids: dict[int, str] = field(default_factory=dict)

    def _plain(self, value: Any, version: int) -> Any:
        plain = Talk._plain(self, value, version)
        if isinstance(value, msgspec.Struct) and isinstance(plain, dict):
            for name in ("producer_id", "transaction_start_time_ms"):
                if plain.get(name, -1) > 0:
                    plain[name] = self._named_id(plain[name]) if name == "producer_id" else "a time"
        return plain

    def _named_id(self, producer_id: int) -> str:
        return self._ids.setdefault(producer_id, f"id {len(self._ids) + 1}")

    # -- the usual requests ------------------------------------------------------------------

    def init(
        self,
        owner: Producer | None = None,
        *,
        version: int = 5,
        name: str | None = "",
        timeout_ms: int = 60_000,
        takes: bool = True,
        two_phase: bool = False,
        keeps: bool = False,
    ) -> Any:
        """InitProducerId; what it gives is used from then on, unless ``takes`` is false."""
        claimed = owner or Producer()
        answer = self.ask(
            ip.InitProducerIdRequest(
                transactional_id=self.group if name == "" else name,
                transaction_timeout_ms=timeout_ms,
                producer_id=claimed.producer_id,
                producer_epoch=claimed.epoch,
                enable_2pc=two_phase,
                keep_prepared_txn=keeps,
            ),
            version,
        )
        if takes and answer.error_code == 0:
            self.me = Producer(answer.producer_id, answer.producer_epoch)
        return answer

    def begin(self, partitions: Partitions) -> None:
        """A producer with an open transaction."""
        self.init()
        self.add(partitions)

    def add(
        self, partitions: Partitions, by_whom: Producer | None = None, *, version: int = 3, name: str = ""
    ) -> Any:
        producer = by_whom or self.me
        topics = [ap.AddPartitionsToTxnTopic(name=t, partitions=p) for t, p in partitions.items()]
        transactional_id = "" if name == "none" else name or self.group
        if version < 4:
            request = ap.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.epoch,
                v3_and_below_topics=topics,
            )
        else:
            request = ap.AddPartitionsToTxnRequest(
                transactions=[self._transaction(producer, transactional_id, topics, verify=False)]
            )
        return self.ask(request, version)

    @staticmethod
    def _transaction(
        producer: Producer, name: str, topics: list[ap.AddPartitionsToTxnTopic], *, verify: bool
    ) -> ap.AddPartitionsToTxnTransaction:
        return ap.AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify,
            topics=topics,
        )

    def verify(
        self, partitions: Partitions, by_whom: Producer | None = None, *, version: int = 5, name: str = ""
    ) -> Any:
        topics = [ap.AddPartitionsToTxnTopic(name=t, partitions=p) for t, p in partitions.items()]
        transactional_id = "" if name == "none" else name or self.group
        asked = self._transaction(by_whom or self.me, transactional_id, topics, verify=True)
        return self.ask(ap.AddPartitionsToTxnRequest(transactions=[asked]), version)

    def add_offsets(self, by_whom: Producer | None = None, *, version: int = 3, group: str = "") -> Any:
        producer = by_whom or self.me
        return self.ask(
            ao.AddOffsetsToTxnRequest(
                transactional_id=self.group,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                group_id=group or self.group,
            ),
            version,
        )

    def end(
        self, by_whom: Producer | None = None, *, commit: bool = True, version: int = 3, name: str = ""
    ) -> Any:
        producer = by_whom or self.me
        return self.ask(
            et.EndTxnRequest(
                transactional_id="" if name == "none" else name or self.group,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                committed=commit,
            ),
            version,
        )

    def ended(self, *, commit: bool = True) -> None:
        """End the transaction, and wait for its markers."""
        self.end(commit=commit)
        self.settle()

    def settle(self) -> None:
        """Wait until the transaction has ended; what was asked meanwhile is not noted."""

        def is_over() -> bool:
            noted = len(self.answers)
            state = self.describe().transaction_states[0].transaction_state
            del self.answers[noted:]
            return state in ENDED

        wait_until(is_over, "the transaction has ended", 30)

    def describe(self, *names: str) -> Any:
        return self.ask(dt.DescribeTransactionsRequest(transactional_ids=names or (self.group,)), 0)

    def list_own(self, version: int = 1, **filters: Any) -> None:
        """The transactions of this case among those listed."""
        answer = self.ask(lt.ListTransactionsRequest(**filters), version)
        own = [each for each in answer.transaction_states if each.transactional_id == self.group]
        listed = lt.ListTransactionsResponse(
            error_code=answer.error_code,
            unknown_state_filters=answer.unknown_state_filters,
            transaction_states=own,
        )
        self.answers[-1] = (self.answers[-1][0], self._plain(listed, version))

    def produce(
        self,
        topic: str,
        partition: int,
        sequence: int,
        by_whom: Producer | None = None,
        *,
        version: int = 11,
        name: str | None = "",
        acks: int = -1,
        is_transactional: bool = True,
    ) -> Any:
        data = _batch(partition, sequence, by_whom or self.me, is_transactional)
        return self.ask(self._produce_request(topic, [data], name, acks), version)

    def produce_two(self, topic: str, first: Producer, second: Producer, version: int = 11) -> Any:
        """One request with the first batch of each, to partitions 0 and 1."""
        data = [_batch(0, 0, first, True), _batch(1, 0, second, True)]
        return self.ask(self._produce_request(topic, data, "", -1), version)

    def _produce_request(
        self, topic: str, data: list[pr.PartitionProduceData], name: str | None, acks: int
    ) -> pr.ProduceRequest:
        return pr.ProduceRequest(
            transactional_id=self.group if name == "" else name,
            acks=acks,
            timeout_ms=5_000,
            topic_data=[pr.TopicProduceData(name=topic, partition_data=data)],
        )

    def commit_offsets(
        self,
        offsets: dict[tuple[str, int], int],
        by_whom: Producer | None = None,
        *,
        version: int = 4,
        name: str = "",
        metadata: str = "",
        **fields: Any,
    ) -> Any:
        """TxnOffsetCommit."""
        producer = by_whom or self.me
        topics: dict[str, list[tc.TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            row = tc.TxnOffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
            topics.setdefault(topic, []).append(row)
        given: dict[str, Any] = {
            "transactional_id": name or self.group,
            "group_id": self.group,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "topics": [
                tc.TxnOffsetCommitRequestTopic(name=each, partitions=rows) for each, rows in topics.items()
            ],
            **fields,
        }
        return self.ask(tc.TxnOffsetCommitRequest(**given), version)


@dataclass(slots=True)
class PartitionTalk(TransactionTalk):
    """Also looks at the partitions themselves: what they hold, and what they know of producers."""

    def made(self, partitions: int = 1) -> str:
        """A fresh topic of the case's name, led; not noted."""
        noted = len(self.answers)
        topic = f"{self.group}-topic"
        row = ct.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        assert self.ask(ct.CreateTopicsRequest(topics=[row], timeout_ms=30_000), 5).topics[0].error_code == 0

        def is_led() -> bool:
            rows = self.ends(topic, range(partitions)).topics[0].partitions
            return all(each.error_code == 0 for each in rows)

        wait_until(is_led, f"{topic} is led", 60)
        del self.answers[noted:]
        return topic

    def ends(
        self, topic: str, partitions: Iterable[int] = (0,), timestamp: int = LATEST, isolation: int = 1
    ) -> Any:
        """ListOffsets."""
        rows = [lo.ListOffsetsPartition(partition_index=each, timestamp=timestamp) for each in partitions]
        asked = [lo.ListOffsetsTopic(name=topic, partitions=rows)]
        return self.ask(lo.ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=asked), 7)

    def read_request(self, topic: str, offset: int, isolation: int, wait_ms: int) -> fe.FetchRequest:
        row = fe.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)
        return fe.FetchRequest(
            replica_id=-1,
            max_wait_ms=wait_ms,
            min_bytes=1 if wait_ms else 0,
            max_bytes=1_000_000,
            isolation_level=isolation,
            topics=[fe.FetchTopic(topic=topic, partitions=[row])],
        )

    def read(self, topic: str, offset: int = 0, isolation: int = 1) -> None:
        """Fetch from partition 0; the batches are noted without their bytes."""
        self.send(self.read_request(topic, offset, isolation, 0), FETCH_VERSION, "reader")
        self.take_read()

    def take_read(self) -> None:
        answer = self.take("reader")
        (row,) = answer.responses[0].partitions
        records = memoryview(bytes(row.records or b""))
        found = {
            "error": row.error_code,
            "high_watermark": row.high_watermark,
            "last_stable_offset": row.last_stable_offset,
            "log_start_offset": row.log_start_offset,
            "aborted": row.aborted_transactions
            and [(self._named_id(each.producer_id), each.first_offset) for each in row.aborted_transactions],
            "batches": [(each.base_offset, each.last_offset, each.is_control) for each in batches(records)],
        }
        self.answers[-1] = (self.answers[-1][0], found)

    def until_read(self, topic: str) -> None:
        """Wait until readers of committed records get past the last record; not noted."""

        def is_past() -> bool:
            noted = len(self.answers)
            ends = [
                self.ends(topic, isolation=isolation).topics[0].partitions[0].offset for isolation in (0, 1)
            ]
            del self.answers[noted:]
            return ends[0] == ends[1]

        wait_until(is_past, f"{topic} is stable", 30)

    def mark(
        self,
        *markers: tuple[Producer, bool, int],
        topic: str = "",
        partitions: tuple[int, ...] = (0,),
        version: int = 1,
    ) -> Any:
        """WriteTxnMarkers: whose, whether a commit, and the coordinator epoch."""
        rows = [
            wm.WritableTxnMarker(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                transaction_result=is_commit,
                coordinator_epoch=coordinator_epoch,
                topics=[wm.WritableTxnMarkerTopic(name=topic, partition_indexes=partitions)],
            )
            for producer, is_commit, coordinator_epoch in markers
        ]
        return self.ask(wm.WriteTxnMarkersRequest(markers=rows), version)

    def producers(self, topic: str, partition: int = 0) -> None:
        """DescribeProducers, without the times of markers."""
        asked = [dp.TopicRequest(name=topic, partition_indexes=(partition,))]
        answer = self.ask(dp.DescribeProducersRequest(topics=asked), 0)
        for each in answer.topics[0].partitions[0].active_producers:
            each.last_timestamp = min(each.last_timestamp, NOW_MS)
        self.answers[-1] = (self.answers[-1][0], self._plain(answer, 0))

    def cut(self, topic: str, offset: int) -> None:
        """DeleteRecords."""
        rows = [dr.DeleteRecordsPartition(partition_index=0, offset=offset)]
        asked = [dr.DeleteRecordsTopic(name=topic, partitions=rows)]
        self.ask(dr.DeleteRecordsRequest(topics=asked, timeout_ms=5_000), 1)


def _batch(partition: int, sequence: int, producer: Producer, transactional: bool) -> pr.PartitionProduceData:
    batch = build_batch(
        [Record(None, b"value", timestamp=NOW_MS)],
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )
    return pr.PartitionProduceData(index=partition, records=bytes(batch))


class TransactionCases(list[tuple[str, Callable[[PartitionTalk], None]]]):
    """A list that functions enter by decoration."""

    def add(self, function: Callable[[PartitionTalk], None]) -> Callable[[PartitionTalk], None]:
        self.append((function.__name__.replace("_", "-"), function))
        return function


def answers_in(run: Callable[[PartitionTalk], None], name: str, address: str) -> list[tuple[str, Any]]:
    """What one broker answers in one case."""
    talk = PartitionTalk(address, name)
    try:
        run(talk)
    finally:
        talk.close()
    return talk.answers
