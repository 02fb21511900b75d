"""What transactions leave in partitions: what readers see, what markers do, what is known of producers."""

from __future__ import annotations

from ottla.model.timestamps import EARLIEST, LATEST, MAX_TIMESTAMP
from ottla.wire.apis import delete_topics as dt
from ottla.wire.apis import end_txn as et
from ottla.wire.apis import offset_delete as od
from ottla.wire.apis import produce as pr
from ottla.wire.apis import write_txn_markers as wm
from support.groups.conversation import TOPIC
from support.transactions.conversation import NOW_MS, PartitionTalk, Producer, TransactionCases

CASES = TransactionCases()
GONE = "gone"
"""A topic whose partition can take no marker; a case deletes it."""
STRANGER = Producer(910_001, 3)


# -- readers ---------------------------------------------------------------------------------------


@CASES.add
def an_open_transaction_holds_readers_up(talk: PartitionTalk) -> None:
    topic = talk.made()
    talk.begin({topic: (0,)})
    talk.produce(topic, 0, 0)
    talk.produce(topic, 0, 1)
    for isolation in (0, 1):
        talk.read(topic, isolation=isolation)
        for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP, NOW_MS):
            talk.ends(topic, timestamp=timestamp, isolation=isolation)


@CASES.add
def what_is_committed_is_read(talk: PartitionTalk) -> None:
    topic = talk.made()
    talk.begin({topic: (0,)})
    talk.produce(topic, 0, 0)
    talk.ended()
    talk.read(topic)
    talk.read(topic, offset=1)
    talk.ends(topic)


@CASES.add
def what_is_aborted_is_listed(talk: PartitionTalk) -> None:
    topic = talk.made()
    talk.begin({topic: (0,)})
    talk.produce(topic, 0, 0)
    talk.ended(commit=False)
    for isolation in (0, 1):
        for offset in (0, 1, 2, 3):
            talk.read(topic, offset=offset, isolation=isolation)


@CASES.add
def a_transaction_without_records_leaves_markers_alone(talk: PartitionTalk) -> None:
    topic = talk.made()
    for commit in (True, False):
        talk.begin({topic: (0,)})
        talk.ended(commit=commit)
    talk.read(topic)
    talk.producers(topic)


@CASES.add
def the_oldest_open_transaction_counts(talk: PartitionTalk) -> None:
    """The younger one is aborted, the older one stays open."""
    topic = talk.made()
    name = talk.group
    talk.begin({topic: (0,)})
    talk.produce(topic, 0, 0)
    older = talk.me
    talk.group = f"{name}-younger"
    talk.begin({topic: (0,)})
    talk.produce(topic, 0, 0)
    talk.ended(commit=False)
    talk.read(topic)
    talk.group = name
    talk.end(older)
    talk.settle()
    talk.read(topic)
    talk.read(topic, offset=2)


@CASES.add
def a_reader_that_waits_sees_what_was_aborted(talk: PartitionTalk) -> None:
    """KAFKA-5376: a parked fetch must list what was aborted meanwhile."""
    topic = talk.made()
    talk.begin({topic: (0,)})
    talk.produce(topic, 0, 0)
    talk.send(talk.read_request(topic, 0, 1, 10_000), 11, "reader")
    talk.ended(commit=False)
    talk.take_read()


@CASES.add
def records_of_an_open_transaction_are_deleted(talk: PartitionTalk) -> None:
    topic = talk.made()
    talk.begin({topic: (0,)})
    talk.produce(topic, 0, 0)
    talk.produce(topic, 0, 1)
    talk.cut(topic, 1)
    talk.read(topic, offset=1)
    talk.producers(topic)
    talk.ended(commit=False)
    talk.read(topic, offset=1)


@CASES.add
def one_partition_has_its_marker_and_the_other_cannot(talk: PartitionTalk) -> None:
    """Then the other one's topic is deleted, and the transaction completes."""
    topic = talk.made()
    talk.begin({topic: (0,), GONE: (0,)})
    talk.produce(topic, 0, 0)
    talk.end()
    talk.until_read(topic)
    talk.describe()
    for version in (2, 3, 4):
        talk.commit_offsets({(TOPIC, 0): 1}, version=version)
    talk.ask(dt.DeleteTopicsRequest(topic_names=(GONE,), timeout_ms=30_000), 5)
    talk.settle()
    talk.describe()


# -- sequences -------------------------------------------------------------------------------------


@CASES.add
def the_last_batch_of_the_transaction_before_is_repeated(talk: PartitionTalk) -> None:
    topic = talk.made()
    talk.begin({topic: (0,)})
    talk.produce(topic, 0, 0)
    talk.ended()
    talk.produce(topic, 0, 0)
    talk.add({topic: (0,)})
    talk.produce(topic, 0, 0)
    talk.produce(topic, 0, 2)
    talk.produce(topic, 0, 1)
    talk.ended()


@CASES.add
def produce_names_nobody(talk: PartitionTalk) -> None:
    topic = talk.made()
    talk.begin({topic: (0,)})
    for version in (3, 8, 9, 10, 11):
        for name in ("nobody knows it", None):
            talk.produce(topic, 0, 0, version=version, name=name)
    empty = talk._produce_request(topic, [], None, -1)
    talk.ask(
        pr.ProduceRequest(transactional_id="", acks=-1, timeout_ms=1_000, topic_data=empty.topic_data), 11
    )
    talk.produce(topic, 0, 5)
    talk.produce(topic, 0, 0, talk.me.other())
    talk.produce(topic, 0, 0, talk.me.newer())
    talk.ended(commit=False)


@CASES.add
def time_is_up_at_once(talk: PartitionTalk) -> None:
    topic = talk.made()
    talk.init(timeout_ms=1)
    talk.add({topic: (0,)})
    talk.settle()
    talk.describe()
    talk.produce(topic, 0, 0)
    talk.read(topic)
    talk.producers(topic)


# -- markers ---------------------------------------------------------------------------------------


@CASES.add
def markers_from_nobody(talk: PartitionTalk) -> None:
    topic = talk.made()
    for version in (0, 1):
        talk.ask(wm.WriteTxnMarkersRequest(markers=[]), version)
        talk.mark((STRANGER, True, 5), topic="nope", version=version)
        talk.mark((STRANGER, True, 5), topic=topic, partitions=(7,), version=version)
    talk.mark((STRANGER, True, 5), topic=topic, partitions=(0, 7))
    talk.read(topic)
    talk.producers(topic)


@CASES.add
def markers_of_old_epochs(talk: PartitionTalk) -> None:
    topic = talk.made()
    talk.mark((STRANGER, True, 5), topic=topic)
    talk.mark((STRANGER.older(), True, 5), topic=topic)
    talk.mark((STRANGER, True, 4), topic=topic)
    talk.mark((STRANGER, True, 5), topic=topic)
    talk.mark((STRANGER, True, 5), (STRANGER.newer(), False, 6), topic=topic)
    talk.producers(topic)
    for epoch, sequence in ((3, 0), (4, 5), (4, 0)):
        talk.produce(
            topic, 0, sequence, Producer(STRANGER.producer_id, epoch), is_transactional=False, name=None
        )
    talk.read(topic)


@CASES.add
def a_marker_from_nobody_ends_a_transaction(talk: PartitionTalk) -> None:
    topic = talk.made()
    talk.begin({topic: (0,)})
    talk.produce(topic, 0, 0)
    talk.mark((talk.me, False, 7), topic=topic)
    talk.read(topic)
    talk.describe()
    talk.produce(topic, 0, 1)
    talk.producers(topic)


@CASES.add
def negative_numbers_in_a_marker(talk: PartitionTalk) -> None:
    topic = talk.made()
    talk.mark((Producer(910_002, 0), True, -1), topic=topic)
    talk.mark((Producer(910_003, 0), True, 0), topic=topic, partitions=(-1,))
    talk.mark((Producer(910_003, 0), True, 0), topic="")
    talk.producers(topic)


# -- producers -------------------------------------------------------------------------------------


@CASES.add
def what_a_partition_knows_of_its_producers(talk: PartitionTalk) -> None:
    topic = talk.made()
    talk.producers(topic)
    talk.begin({topic: (0,)})
    talk.produce(topic, 0, 0)
    talk.producers(topic)
    talk.ended()
    talk.producers(topic)
    talk.init()
    talk.producers(topic)


@CASES.add
def producers_of_what_is_not_there(talk: PartitionTalk) -> None:
    for topic, partition in (
        ("nope", 0),
        (TOPIC, 9),
        (TOPIC, -1),
        ("a b", 0),
        ("", 0),
        ("x" * 250, 0),
        (".", 0),
    ):
        talk.producers(topic, partition)


# -- bad input -------------------------------------------------------------------------------------


@CASES.add
def ids_of_every_length(talk: PartitionTalk) -> None:
    for name in ("x", "x" * 249, "x" * 1_000, "x" * 32_000, "\u00fc", " ", "a b/c"):
        talk.init(name=name, takes=False)
        talk.describe(name)


@CASES.add
def epochs_and_ids_that_cannot_be(talk: PartitionTalk) -> None:
    talk.init()
    for claim in (Producer(-2, 0), Producer(0, -2), Producer(-2, -2), Producer(talk.me.producer_id, 32_767)):
        talk.init(claim, takes=False)
        talk.add({TOPIC: (0,)}, claim)
        talk.add_offsets(claim)
        talk.end(claim)
        talk.verify({TOPIC: (0,)}, claim)
        talk.commit_offsets({(TOPIC, 0): 1}, claim)
    talk.describe()


@CASES.add
def the_same_partition_twice(talk: PartitionTalk) -> None:
    talk.init()
    talk.add({TOPIC: (0, 0)})
    talk.add({TOPIC: (-1,)})
    talk.add({"": (0,)})
    talk.add({"a b": (0,)})
    talk.describe()
    talk.ended(commit=False)


@CASES.add
def offsets_of_foreign_groups(talk: PartitionTalk) -> None:
    """Another group than the one that was added; its partition is the same, and so it passes."""
    talk.init()
    talk.add_offsets(group="a-group-of-others")
    talk.commit_offsets({(TOPIC, 0): 1}, group_id=f"{talk.group}-foreign")
    talk.ended()
    talk.fetch({TOPIC: (0,)}, group=f"{talk.group}-foreign")


@CASES.add
def odd_offsets(talk: PartitionTalk) -> None:
    talk.init()
    talk.add_offsets()
    for offset in (-1, -2, 2**63 - 1, -(2**63)):
        talk.commit_offsets({(TOPIC, 0): offset})
    talk.commit_offsets({(TOPIC, -1): 1, (TOPIC, 9): 1, ("a b", 0): 1})
    talk.commit_offsets({})
    talk.ended(commit=False)


@CASES.add
def offsets_deleted_while_they_are_pending_and_aborted(talk: PartitionTalk) -> None:
    talk.init()
    talk.commit({(TOPIC, 0): 5})
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 10})
    rows = [od.OffsetDeleteRequestPartition(partition_index=0)]
    topics = [od.OffsetDeleteRequestTopic(name=TOPIC, partitions=rows)]
    talk.ask(od.OffsetDeleteRequest(group_id=talk.group, topics=topics), 0)
    talk.fetch({TOPIC: (0,)}, require_stable=True)
    talk.ended(commit=False)
    talk.fetch({TOPIC: (0,)}, require_stable=True)


@CASES.add
def offsets_deleted_while_they_are_pending_and_committed(talk: PartitionTalk) -> None:
    talk.init()
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 10})
    rows = [od.OffsetDeleteRequestPartition(partition_index=0)]
    topics = [od.OffsetDeleteRequestTopic(name=TOPIC, partitions=rows)]
    talk.ask(od.OffsetDeleteRequest(group_id=talk.group, topics=topics), 0)
    talk.ended()
    talk.fetch({TOPIC: (0,)}, require_stable=True)


@CASES.add
def two_groups_in_one_transaction(talk: PartitionTalk) -> None:
    talk.init()
    others = f"{talk.group}-others"
    for group in ("", others):
        talk.add_offsets(group=group)
    talk.commit_offsets({(TOPIC, 0): 10})
    talk.commit_offsets({(TOPIC, 1): 20}, group_id=others)
    talk.ended()
    for group in (talk.group, others):
        talk.fetch({TOPIC: (0, 1)}, group=group, require_stable=True)


@CASES.add
def an_end_taken_back(talk: PartitionTalk) -> None:
    """What is committed is not aborted any more."""
    talk.begin({TOPIC: (2,)})
    for commit in (True, False):
        talk.send(
            et.EndTxnRequest(
                transactional_id=talk.group,
                producer_id=talk.me.producer_id,
                producer_epoch=talk.me.epoch,
                committed=commit,
            ),
            3,
            "b",
        )
        talk.take("b")
        talk.settle()
    talk.describe()
