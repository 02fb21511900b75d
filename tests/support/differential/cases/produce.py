"""Produce: every fault of a batch, every version, codec and acks, and the idempotent producer's rules."""

from __future__ import annotations

from typing import Any

from ottla.records.compression import Codec
from ottla.wire.apis.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.differential.batches_to_send import FAULTS, a_batch, with_attributes
from support.differential.talk import Cases, Talk
from support.differential.target import NOW_MS

CASES = Cases()
LATEST = -1


def produce(
    talk: Talk,
    records: bytes | None,
    *,
    kind: str = "plain",
    topic: str | None = None,
    partition: int | None = None,
    version: int = 11,
    acks: int = -1,
    transactional_id: str | None = None,
    timeout_ms: int = 5_000,
    note: str = "",
) -> Any:
    """Send one batch to the case's partition."""
    index = talk.partition_of(kind) if partition is None else partition
    data = TopicProduceData(
        name=talk.topic(kind) if topic is None else topic,
        partition_data=[PartitionProduceData(index=index, records=records)],
    )
    request = ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=[data]
    )
    return talk.ask(request, version, note=note)


def end_offset(talk: Talk, kind: str = "plain") -> None:
    """Where the partition ends now: what was written stays written."""
    asked = ListOffsetsPartition(partition_index=talk.partition_of(kind), timestamp=LATEST)
    topic = ListOffsetsTopic(name=talk.topic(kind), partitions=[asked])
    talk.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 9, note="latest")


def read_back(talk: Talk, kind: str = "plain") -> None:
    """What lies in the partition."""
    asked = FetchPartition(partition=talk.partition_of(kind), partition_max_bytes=2_000_000)
    topic = FetchTopic(topic=talk.topic(kind), topic_id=talk.topic_id(kind), partitions=[asked])
    talk.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic]), 12, note="all")


@CASES.add_for(*range(3, 12))
def produce_in_version(talk: Talk, version: int) -> None:
    produce(talk, a_batch(2), version=version)
    read_back(talk)


@CASES.add_for(0, 1, 2)
def produce_in_the_old_version(talk: Talk, version: int) -> None:
    produce(talk, a_batch(2), version=version)
    end_offset(talk)


@CASES.add_for(*Codec)
def produce_compressed(talk: Talk, codec: Codec) -> None:
    produce(talk, a_batch(3, codec=codec))
    produce(talk, a_batch(3, codec=codec), version=6)
    read_back(talk)


@CASES.add_for(1, 0, -1, 2, -2)
def produce_with_acks(talk: Talk, acks: int) -> None:
    if acks == 0:
        data = TopicProduceData(
            name=talk.topic(), partition_data=[PartitionProduceData(index=talk.partition, records=a_batch())]
        )
        talk.tell(ProduceRequest(acks=0, timeout_ms=1_000, topic_data=[data]), 9)
    else:
        produce(talk, a_batch(), acks=acks)
    end_offset(talk)


@CASES.add
def produce_with_acks_0_to_nobody(talk: Talk) -> None:
    data = TopicProduceData(name="nobody", partition_data=[PartitionProduceData(index=0, records=a_batch())])
    talk.ask_and_expect_silence(ProduceRequest(acks=0, timeout_ms=1_000, topic_data=[data]), 9)
    end_offset(talk)


@CASES.add_for(*FAULTS)
def produce_a_batch_with(talk: Talk, fault: str) -> None:
    produce(talk, FAULTS[fault])
    read_back(talk)


@CASES.add_for("wrong checksum", "two batches", "magic 3", "no bytes", "count 0", "magic 1", "over 1 MB")
def produce_in_version_7_a_batch_with(talk: Talk, fault: str) -> None:
    produce(talk, FAULTS[fault], version=7, acks=1)
    end_offset(talk)


@CASES.add
def produce_null_records(talk: Talk) -> None:
    data = TopicProduceData(name=talk.topic(), partition_data=[PartitionProduceData(index=talk.partition)])
    talk.ask_and_expect_silence(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[data]), 9)
    end_offset(talk)


@CASES.add_for("nobody", "", ".", "a/b", "x" * 250)
def produce_to_the_topic(talk: Talk, topic: str) -> None:
    produce(talk, a_batch(), topic=topic, partition=0)
    produce(talk, a_batch(), topic=topic, partition=0, version=7)


@CASES.add_for(-1, 100_000)
def produce_to_partition(talk: Talk, partition: int) -> None:
    produce(talk, a_batch(), partition=partition)


@CASES.add_for(7, 9, 10, 11)
def produce_to_a_partition_of_the_peer(talk: Talk, version: int) -> None:
    produce(talk, a_batch(), topic=talk.target.the_peer.topic("plain"), partition=1, version=version)


@CASES.add_for("__consumer_offsets", "__transaction_state")
def produce_to_the_internal_topic(talk: Talk, topic: str) -> None:
    produce(talk, a_batch(), topic=topic, partition=0)


@CASES.add
def produce_without_topics(talk: Talk) -> None:
    talk.ask(ProduceRequest(acks=-1, timeout_ms=1_000), 11)
    talk.ask(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[TopicProduceData(name=talk.topic())]), 11)


@CASES.add
def produce_to_good_and_bad_partitions_at_once(talk: Talk) -> None:
    parts = [
        PartitionProduceData(index=talk.partition, records=a_batch(2)),
        PartitionProduceData(index=99_999, records=a_batch()),
    ]
    topics = [
        TopicProduceData(name=talk.topic(), partition_data=parts),
        TopicProduceData(name="nobody", partition_data=[PartitionProduceData(index=0, records=a_batch())]),
    ]
    talk.ask(ProduceRequest(acks=-1, timeout_ms=2_000, topic_data=topics), 11)
    end_offset(talk)


@CASES.add_for("magic 3", "length 13", "two batches", "wrong checksum")
def produce_a_sound_batch_beside_one_with(talk: Talk, fault: str) -> None:
    parts = [PartitionProduceData(index=talk.partition, records=a_batch(2))]
    others = [PartitionProduceData(index=talk.partition_of("tiny"), records=FAULTS[fault])]
    topics = [
        TopicProduceData(name=talk.topic(), partition_data=parts),
        TopicProduceData(name=talk.topic("tiny"), partition_data=others),
    ]
    talk.ask(ProduceRequest(acks=-1, timeout_ms=2_000, topic_data=topics), 11)
    end_offset(talk)


@CASES.add
def produce_twice_to_a_partition_in_one_request(talk: Talk) -> None:
    parts = [PartitionProduceData(index=talk.partition, records=a_batch(count)) for count in (1, 3)]
    data = TopicProduceData(name=talk.topic(), partition_data=parts)
    talk.ask(ProduceRequest(acks=-1, timeout_ms=2_000, topic_data=[data]), 11)
    end_offset(talk)


@CASES.add_for(8, 11)
def produce_without_keys_to_a_compacted_topic(talk: Talk, version: int) -> None:
    produce(talk, a_batch(5, key=None), kind="compact", version=version)
    produce(talk, a_batch(2), kind="compact", version=version)
    end_offset(talk, "compact")


@CASES.add_for(-100_000, -500, 100_000, -(NOW_MS + 1))
def produce_to_a_strict_topic_with_a_time_off_by(talk: Talk, off_ms: int) -> None:
    for version in (7, 11):
        produce(talk, a_batch(2, timestamp=NOW_MS + off_ms), kind="strict", version=version)


@CASES.add_for(Codec.NONE, Codec.LZ4)
def produce_to_a_topic_with_log_append_time(talk: Talk, codec: Codec) -> None:
    produce(talk, a_batch(2, codec=codec), kind="stamped")
    produce(talk, with_attributes(a_batch(codec=codec), 0x08), kind="stamped")
    read_back(talk, "stamped")


@CASES.add_for(Codec.NONE, Codec.GZIP, Codec.ZSTD)
def produce_to_a_topic_with_its_own_compression(talk: Talk, codec: Codec) -> None:
    produce(talk, a_batch(4, codec=codec), kind="packed")
    read_back(talk, "packed")


@CASES.add
def produce_more_than_the_topic_takes(talk: Talk) -> None:
    produce(talk, a_batch(value=bytes(500)), kind="tiny")
    produce(talk, a_batch(value=bytes(500)), kind="tiny", version=7, acks=1)
    produce(talk, a_batch(value=bytes(900)), kind="small")
    produce(talk, a_batch(value=bytes(1_500)), kind="small")
    end_offset(talk, "small")


@CASES.add
def produce_over_several_segments(talk: Talk) -> None:
    for _ in range(6):
        produce(talk, a_batch(value=bytes(300)), kind="small")
    read_back(talk, "small")


@CASES.add
def produce_idempotently_in_order_again_and_out_of_order(talk: Talk) -> None:
    for sequence in (0, 2, 4, 2, 4, 8, 6):
        produce(talk, a_batch(2, producer=(900, 3, sequence)), note=f"sequence {sequence}")
    end_offset(talk)


@CASES.add
def produce_idempotently_what_is_too_old_to_be_known(talk: Talk) -> None:
    for sequence in (*range(7), 0, 1, 2, 6):
        produce(talk, a_batch(producer=(901, 0, sequence)), note=f"sequence {sequence}")
    end_offset(talk)


@CASES.add
def produce_idempotently_in_other_epochs(talk: Talk) -> None:
    for epoch, sequence in ((5, 0), (4, 1), (6, 3), (6, 0), (5, 1), (6, 1), (7, 0)):
        produce(talk, a_batch(producer=(902, epoch, sequence)), note=f"epoch {epoch} sequence {sequence}")
    end_offset(talk)


@CASES.add_for(0, 17, 2**31 - 1)
def produce_idempotently_for_the_first_time_with_sequence(talk: Talk, sequence: int) -> None:
    produce(talk, a_batch(producer=(903, 0, sequence)))
    following = 0 if sequence == 2**31 - 1 else sequence + 1
    produce(talk, a_batch(producer=(903, 0, following)), note="the next")
    talk.ask(DescribeProducersRequest(topics=[TopicRequest(talk.topic(), (talk.partition,))]), 0)


@CASES.add
def produce_a_duplicate_with_other_records(talk: Talk) -> None:
    produce(talk, a_batch(2, producer=(904, 0, 0)))
    produce(talk, a_batch(2, producer=(904, 0, 0), value=b"other", timestamp=NOW_MS + 50), note="again")
    produce(talk, a_batch(3, producer=(904, 0, 0)), note="longer")
    read_back(talk)


@CASES.add
def produce_transactionally_without_a_transactional_id(talk: Talk) -> None:
    produce(talk, a_batch(producer=(905, 0, 0), transactional=True))
    end_offset(talk)
