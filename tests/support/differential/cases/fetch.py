"""Fetch: every version, offsets and sizes at their edges, epochs, isolation, and sessions."""

from __future__ import annotations

from typing import Any

from ottla.wire.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from support.differential.batches_to_send import a_batch
from support.differential.cases.produce import produce
from support.differential.talk import Cases, Talk

CASES = Cases()
UNKNOWN_ID = bytes(range(16))


def fetch(
    talk: Talk,
    offset: int = 0,
    *,
    version: int = 17,
    partitions: list[FetchPartition] | None = None,
    topic: str | None = None,
    topic_id: bytes | None = None,
    note: str = "",
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 10_000_000,
    partition_max_bytes: int = 1_000_000,
    isolation: int = 0,
    session: tuple[int, int] = (0, -1),
    forgotten: list[ForgottenTopic] | None = None,
    epoch: int = -1,
    last_epoch: int = -1,
    replica: int = -1,
) -> Any:
    """Fetch the case's partition, or others."""
    wanted = [
        FetchPartition(
            partition=talk.partition,
            fetch_offset=offset,
            current_leader_epoch=epoch,
            last_fetched_epoch=last_epoch,
            partition_max_bytes=partition_max_bytes,
        )
    ]
    topics = [
        FetchTopic(
            topic=talk.topic() if topic is None else topic,
            topic_id=talk.topic_id() if topic_id is None else topic_id,
            partitions=wanted if partitions is None else partitions,
        )
    ]
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics if partitions != [] else [],
        forgotten_topics_data=forgotten or [],
    )
    if version >= 15:
        request.replica_state = ReplicaState(replica_id=replica)
    else:
        request.replica_id = replica
    return talk.ask(request, version, note=note)


def fill(talk: Talk, *counts: int) -> None:
    for count in counts or (3, 2, 4):
        produce(talk, a_batch(count))


@CASES.add_for(*range(18))
def fetch_in_version(talk: Talk, version: int) -> None:
    fill(talk)
    fetch(talk, 0, version=version, note="from 0")
    fetch(talk, 4, version=version, note="from 4")
    fetch(talk, 9, version=version, note="at the end")
    fetch(talk, 10, version=version, note="behind the end")


@CASES.add_for(-1, -2, 10, 2**62)
def fetch_from_offset(talk: Talk, offset: int) -> None:
    fill(talk)
    fetch(talk, offset)
    fetch(talk, offset, version=11)


@CASES.add
def fetch_an_empty_partition(talk: Talk) -> None:
    fetch(talk, 0)
    fetch(talk, 0, max_wait_ms=150, note="with a wait")
    fetch(talk, 1)
    fetch(talk, 0, isolation=1)


@CASES.add_for(0, 1, 61, 100, 200, 350)
def fetch_at_most_bytes_of_a_partition(talk: Talk, size: int) -> None:
    fill(talk)
    fetch(talk, 0, partition_max_bytes=size)
    fetch(talk, 3, partition_max_bytes=size)


@CASES.add_for(0, 1, 150, 300)
def fetch_at_most_bytes_in_all(talk: Talk, size: int) -> None:
    fill(talk)
    wanted = [
        FetchPartition(partition=talk.partition, fetch_offset=offset, partition_max_bytes=1_000)
        for offset in (0,)
    ]
    others = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)]
    topics = [
        FetchTopic(topic=talk.topic(), topic_id=talk.topic_id(), partitions=wanted),
        FetchTopic(topic=talk.topic("packed"), topic_id=talk.topic_id("packed"), partitions=others),
    ]
    talk.ask(FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=size, topics=topics), 17)


@CASES.add
def fetch_waits_no_longer_than_asked(talk: Talk) -> None:
    fill(talk, 1)
    fetch(talk, 0, max_wait_ms=100, min_bytes=100_000, note="for more than there is")
    fetch(talk, 1, max_wait_ms=100, note="at the end")


@CASES.add_for(0, 1, 5, -2)
def fetch_with_current_epoch(talk: Talk, epoch: int) -> None:
    fill(talk)
    fetch(talk, 0, epoch=epoch)
    fetch(talk, 0, epoch=epoch, version=11)


@CASES.add_for((0, 0), (0, 9), (0, 50), (3, 0), (-1, 0))
def fetch_with_last_epoch_and_offset(talk: Talk, given: tuple[int, int]) -> None:
    fill(talk)
    epoch, offset = given
    fetch(talk, offset, last_epoch=epoch, note=f"last epoch {epoch}, offset {offset}")


@CASES.add_for(1, 2, -1)
def fetch_with_isolation(talk: Talk, isolation: int) -> None:
    fill(talk)
    fetch(talk, 0, isolation=isolation)
    fetch(talk, 0, isolation=isolation, version=4)


@CASES.add_for("the peer", "nobody", "the controller")
def fetch_as_a_follower_that_is(talk: Talk, who: str) -> None:
    fill(talk)
    numbers = {
        "the peer": talk.target.the_peer.node_id,
        "nobody": 99,
        "the controller": talk.target.controller_id,
    }
    fetch(talk, 0, replica=numbers[who], epoch=0)
    fetch(talk, 0, replica=numbers[who])
    fetch(talk, 0, replica=numbers[who], version=11, epoch=0)


@CASES.add
def fetch_as_the_broker_itself(talk: Talk) -> None:
    fill(talk)
    fetch(talk, 0, replica=talk.target.node_id, epoch=0)


@CASES.add_for(-2, -3)
def fetch_as_replica(talk: Talk, replica: int) -> None:
    fill(talk)
    fetch(talk, 0, replica=replica)
    fetch(talk, 0, replica=replica, version=11)


@CASES.add_for(11, 12, 13, 17)
def fetch_what_is_not_there(talk: Talk, version: int) -> None:
    fetch(talk, 0, version=version, topic="nobody", topic_id=UNKNOWN_ID, note="unknown topic")
    missing = [FetchPartition(partition=99_999, partition_max_bytes=1_000)]
    fetch(talk, version=version, partitions=missing, note="unknown partition")
    negative = [FetchPartition(partition=-1, partition_max_bytes=1_000)]
    fetch(talk, version=version, partitions=negative, note="negative partition")
    fetch(talk, version=version, topic="", topic_id=bytes(16), note="no topic")


@CASES.add_for(10, 11, 12, 16, 17)
def fetch_from_a_partition_of_the_peer(talk: Talk, version: int) -> None:
    peer = talk.target.the_peer
    name = peer.topic("plain")
    fetch(talk, 0, version=version, topic=name, topic_id=talk.target.topic_ids[name], note="of the peer")


@CASES.add
def fetch_several_partitions_some_of_them_wrong(talk: Talk) -> None:
    fill(talk)
    wanted = [
        FetchPartition(partition=talk.partition, fetch_offset=3, partition_max_bytes=10_000),
        FetchPartition(partition=99_999, partition_max_bytes=10_000),
        FetchPartition(partition=0, fetch_offset=10**9, partition_max_bytes=10_000),
    ]
    fetch(talk, partitions=wanted)
    fetch(talk, partitions=wanted, version=11)


@CASES.add
def fetch_nothing(talk: Talk) -> None:
    fetch(talk, partitions=[])
    fetch(talk, partitions=[], session=(0, 0), note="with a session")
    fetch(talk, partitions=[], version=4)


@CASES.add_for(11, 12, 13, 17)
def fetch_in_a_session(talk: Talk, version: int) -> None:
    fill(talk)
    first = fetch(talk, 0, version=version, session=(0, 0), note="opens")
    session = first.session_id if first is not None else 0
    fetch(talk, version=version, partitions=[], session=(session, 1), note="nothing new")
    fill(talk, 2)
    fetch(talk, version=version, partitions=[], session=(session, 2), note="something new")
    fetch(talk, 9, version=version, session=(session, 3), note="another offset")
    fetch(talk, version=version, partitions=[], session=(session, 9), note="wrong epoch")
    fetch(talk, version=version, partitions=[], session=(session, 4), note="right epoch again")
    gone = [ForgottenTopic(topic=talk.topic(), topic_id=talk.topic_id(), partitions=(talk.partition,))]
    fetch(talk, version=version, partitions=[], session=(session, 5), forgotten=gone, note="forgets all")
    fetch(talk, version=version, partitions=[], session=(session, 6), note="is closed")


@CASES.add
def fetch_in_a_session_that_is_replaced_and_ended(talk: Talk) -> None:
    fill(talk)
    first = fetch(talk, 0, session=(0, 0), note="opens")
    session = first.session_id if first is not None else 0
    fetch(talk, 0, session=(session, 0), note="replaces")
    fetch(talk, partitions=[], session=(session, 1), note="the replaced one")
    second = fetch(talk, 0, session=(0, 0), note="opens another")
    fetch(talk, 0, session=(second.session_id if second is not None else 0, -1), note="ends it")


@CASES.add_for((12345, 1), (12345, 0), (12345, -1), (0, 1), (-7, 1))
def fetch_with_session_and_epoch(talk: Talk, session: tuple[int, int]) -> None:
    fill(talk)
    fetch(talk, 0, session=session, note=str(session))


@CASES.add
def fetch_in_a_session_of_names_by_ids(talk: Talk) -> None:
    fill(talk)
    first = fetch(talk, 0, version=12, session=(0, 0), note="by name")
    session = first.session_id if first is not None else 0
    fetch(talk, partitions=[], version=13, session=(session, 1), note="by id")
    fetch(talk, 0, version=13, session=(session, 1), note="by id, with a partition")


@CASES.add
def fetch_in_a_session_with_an_unknown_topic(talk: Talk) -> None:
    fill(talk)
    topics = [
        FetchTopic(
            topic=talk.topic(),
            topic_id=talk.topic_id(),
            partitions=[FetchPartition(partition=talk.partition, partition_max_bytes=1_000)],
        ),
        FetchTopic(
            topic="nobody", topic_id=UNKNOWN_ID, partitions=[FetchPartition(partition_max_bytes=1_000)]
        ),
    ]
    answer = talk.ask(FetchRequest(session_epoch=0, topics=topics), 17, note="opens")
    session = answer.session_id if answer is not None else 0
    fetch(talk, partitions=[], session=(session, 1), note="goes on")


@CASES.add
def fetch_below_and_at_the_log_start(talk: Talk) -> None:
    fill(talk)
    cut = DeleteRecordsTopic(talk.topic(), [DeleteRecordsPartition(talk.partition, 4)])
    talk.ask(DeleteRecordsRequest(topics=[cut], timeout_ms=5_000), 2)
    for offset in (0, 3, 4, 5):
        fetch(talk, offset, note=f"from {offset}")
        fetch(talk, offset, last_epoch=0, note=f"from {offset} with an epoch")


@CASES.add
def fetch_of_one_partition_asked_for_twice(talk: Talk) -> None:
    fill(talk)
    wanted = [
        FetchPartition(partition=talk.partition, fetch_offset=offset, partition_max_bytes=1_000)
        for offset in (0, 3)
    ]
    fetch(talk, partitions=wanted)
    fetch(talk, partitions=wanted, version=11)
