"""What a transactional producer may say, and much that it should not."""

from __future__ import annotations

from ottla.wire.apis import add_partitions_to_txn as ap
from ottla.wire.apis import delete_groups as dg
from ottla.wire.apis import init_producer_id as ip
from support.groups.conversation import OTHER_TOPIC, TOPIC
from support.transactions.conversation import PartitionTalk, Producer, TransactionCases

CASES = TransactionCases()
STUCK = "stuck"
"""A topic whose partition can take no marker: one of its two replicas is not there."""
ONE, TWO = {TOPIC: (0,)}, {TOPIC: (0, 1)}
INTERNAL = "__consumer_offsets"


# -- InitProducerId ------------------------------------------------------------------------------


@CASES.add
def time_outs_and_odd_claims(talk: PartitionTalk) -> None:
    for timeout_ms in (0, -1, 900_001, 1, 900_000):
        talk.init(timeout_ms=timeout_ms)
    for pid, epoch in ((5, -1), (-1, 5)):
        talk.init(Producer(pid, epoch))
    talk.ask(ip.InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1_000), 5)
    talk.init(Producer(77, 3), name=None, timeout_ms=0, takes=False)
    talk.group += "-unknown"
    talk.init(Producer(123, 5))


@CASES.add
def epochs_rise(talk: PartitionTalk) -> None:
    for version in (0, 1, 2, 3, 4, 5):
        talk.init(version=version)
    owner = talk.me
    talk.init(owner)
    talk.init(owner)
    talk.init(talk.me)
    for claim in (owner, owner.older(), owner.newer(9), owner.other()):
        talk.init(claim, takes=False)
    talk.init(owner.older(), version=3, takes=False)
    before = talk.me
    talk.init()
    talk.init(before, takes=False)
    talk.describe()


@CASES.add
def an_open_transaction_is_fenced(talk: PartitionTalk) -> None:
    talk.begin(ONE)
    owner = talk.me
    talk.init(takes=False)
    talk.settle()
    talk.describe()
    for version in (0, 1, 2, 3):
        talk.end(owner, version=version)
        talk.add(ONE, owner, version=version)
        talk.add_offsets(owner, version=version)
    talk.produce(TOPIC, 0, 0, owner)
    talk.init()


@CASES.add
def a_stale_owner_aborts_too(talk: PartitionTalk) -> None:
    topic = talk.made()
    for _ in range(3):
        talk.init()
    talk.add({topic: (0,)})
    talk.init(talk.me.older(2), takes=False)
    talk.ended(commit=False)
    talk.describe()


# -- AddPartitionsToTxn --------------------------------------------------------------------------


@CASES.add
def adding_to_nobodys_transaction(talk: PartitionTalk) -> None:
    talk.me = Producer(1, 0)
    for version in (0, 1, 2, 3, 4, 5):
        talk.add(ONE, version=version)
    talk.add(ONE, name="none")
    talk.add_offsets()
    talk.end()
    talk.end(name="none")


@CASES.add
def adding_what_is_not_there(talk: PartitionTalk) -> None:
    talk.init()
    talk.add({TOPIC: (0,), "nope": (0,), OTHER_TOPIC: (7, 0)})
    talk.add({TOPIC: (0,), INTERNAL: (0,)})
    talk.add({TOPIC: (0,), "nope": (0,)}, name="none")
    talk.verify({TOPIC: (0,), "nope": (0,)})
    talk.describe()


@CASES.add
def adding_as_somebody_else(talk: PartitionTalk) -> None:
    talk.init()
    for version in (0, 1, 2, 3):
        talk.add(ONE, talk.me.other(), version=version)
        talk.add(ONE, talk.me.newer(), version=version)
        talk.add(ONE, talk.me.older(), version=version)
    talk.describe()


@CASES.add
def adding_step_by_step(talk: PartitionTalk) -> None:
    talk.init()
    talk.describe()
    talk.add(TWO)
    talk.add(ONE)
    talk.add({OTHER_TOPIC: (1,)})
    talk.add({TOPIC: (2,)}, version=5)
    talk.describe()
    talk.ended()
    talk.describe()
    talk.init()
    talk.describe()


@CASES.add
def a_transaction_without_partitions(talk: PartitionTalk) -> None:
    talk.init()
    talk.add({})
    talk.describe()
    talk.ended()
    talk.describe()


@CASES.add
def many_transactions_in_one_request(talk: PartitionTalk) -> None:
    talk.begin(ONE)
    topics = [ap.AddPartitionsToTxnTopic(name=TOPIC, partitions=(0, 1))]
    rows = [
        ap.AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=talk.me.producer_id,
            producer_epoch=talk.me.epoch,
            verify_only=True,
            topics=topics,
        )
        for name in (talk.group, "nobody", "")
    ]
    talk.ask(ap.AddPartitionsToTxnRequest(transactions=rows), 5)


@CASES.add
def verification(talk: PartitionTalk) -> None:
    talk.init()
    talk.verify(ONE)
    talk.add(ONE)
    for version in (4, 5):
        talk.verify(TWO, version=version)
    talk.verify(ONE, talk.me.other())
    talk.verify(ONE, talk.me.newer())
    talk.verify(ONE, name="nobody")
    talk.verify(ONE, name="none")
    talk.ended()
    talk.verify(ONE)


# -- EndTxn --------------------------------------------------------------------------------------


@CASES.add
def ending_what_is_not_open(talk: PartitionTalk) -> None:
    talk.init()
    for commit in (True, False):
        talk.end(commit=commit)
    for version in (0, 1, 2, 3):
        talk.end(talk.me.newer(), version=version)
        talk.end(talk.me.other(), version=version)


@CASES.add
def ending_twice(talk: PartitionTalk) -> None:
    for commit in (True, False):
        talk.begin(ONE)
        talk.ended(commit=commit)
        for again in (True, False):
            talk.end(commit=again)
        talk.describe()


@CASES.add
def in_a_prepared_transaction(talk: PartitionTalk) -> None:
    """Its markers cannot be written: every change waits."""
    talk.begin({TOPIC: (0,), STUCK: (0,)})
    talk.add_offsets()
    talk.end()
    for commit in (True, False):
        talk.end(commit=commit)
    talk.add(TWO)
    talk.add_offsets()
    talk.init(takes=False)
    talk.init(talk.me, takes=False)
    talk.init(talk.me.other(), takes=False)
    talk.add(ONE, talk.me.newer())
    talk.end(talk.me.newer())
    talk.verify(ONE)
    talk.verify(ONE, talk.me.newer())
    for version in (10, 11):
        talk.produce(TOPIC, 1, 0, version=version)
    talk.list_own(state_filters=("PrepareCommit",))


# -- Produce -------------------------------------------------------------------------------------


@CASES.add
def producing_without_adding(talk: PartitionTalk) -> None:
    talk.init()
    for version in (10, 11):
        talk.produce(TOPIC, 0, 0, version=version)
    for name in ("another", None):
        talk.produce(TOPIC, 0, 0, name=name)
    talk.add(ONE)
    talk.produce(TOPIC, 0, 0)
    talk.produce(TOPIC, 0, 1, name="another")
    talk.produce(TOPIC, 0, 2, acks=1)
    talk.produce(TOPIC, 0, 3, is_transactional=False, name=None)
    talk.ended()
    talk.produce(TOPIC, 0, 3)
    talk.produce(TOPIC, 0, 3, is_transactional=False, name=None)


@CASES.add
def two_producers_in_one_request(talk: PartitionTalk) -> None:
    talk.begin(TWO)
    for other in (talk.me.other(), talk.me.newer()):
        talk.produce_two(TOPIC, talk.me, other)
    talk.produce_two(TOPIC, talk.me, talk.me)
    talk.ended()


@CASES.add
def the_next_epoch_begins_at_zero(talk: PartitionTalk) -> None:
    talk.begin({OTHER_TOPIC: (0,)})
    talk.produce(OTHER_TOPIC, 0, 0)
    talk.ended(commit=False)
    talk.init()
    talk.add({OTHER_TOPIC: (0,)})
    talk.produce(OTHER_TOPIC, 0, 2)
    talk.produce(OTHER_TOPIC, 0, 0)
    talk.ended()


@CASES.add
def a_time_out(talk: PartitionTalk) -> None:
    talk.init(timeout_ms=1_000)
    talk.add(ONE)
    talk.settle()
    talk.describe()
    talk.produce(TOPIC, 0, 0)
    talk.add(ONE)
    talk.add(ONE, version=1)
    talk.end()
    talk.init(talk.me, takes=False)
    talk.init(talk.me.newer(), takes=False)
    talk.init()


# -- offsets -------------------------------------------------------------------------------------


@CASES.add
def offsets_of_a_transaction(talk: PartitionTalk) -> None:
    at = {(TOPIC, 0): 10}
    talk.init()
    for version in (0, 3, 4):
        talk.commit_offsets(at, version=version)
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 10, ("nope", 0): 1})
    talk.fetch({TOPIC: (0,)})
    talk.fetch({TOPIC: (0,)}, require_stable=True)
    talk.fetch(None, require_stable=True)
    talk.ended()
    talk.fetch({TOPIC: (0,)}, require_stable=True)
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 20})
    talk.ended(commit=False)
    talk.fetch({TOPIC: (0,)}, require_stable=True)


@CASES.add
def offsets_of_strangers(talk: PartitionTalk) -> None:
    at = {(TOPIC, 0): 10}
    talk.init()
    talk.add_offsets()
    talk.commit_offsets({("nope", 0): 1})
    talk.commit_offsets(at, group_id="")
    for producer in (talk.me.other(), Producer(), talk.me.newer()):
        talk.commit_offsets(at, producer)
    talk.commit_offsets(at, name="another")
    talk.commit_offsets(at)
    talk.commit_offsets(at, talk.me.newer())
    talk.commit_offsets(at, name="another")


@CASES.add
def offsets_of_an_empty_group(talk: PartitionTalk) -> None:
    talk.init()
    talk.add_offsets()
    at = {(TOPIC, 0): 10}
    talk.commit_offsets(at, generation_id=3, member_id="m")
    talk.commit_offsets(at, member_id="m")
    talk.commit_offsets({(TOPIC, 0): -5})
    talk.commit_offsets(at, metadata="x" * 4097)


@CASES.add
def offsets_of_members(talk: PartitionTalk) -> None:
    """KIP-447: a member of another generation must not commit."""
    at = {(TOPIC, 0): 10}
    talk.init()
    talk.add_offsets()
    joined = talk.first_member()
    for step in range(2):
        right = {"generation_id": joined.generation_id, "member_id": joined.member_id}
        talk.commit_offsets(at, **right)
        talk.commit_offsets(at, **{**right, "generation_id": joined.generation_id + 1})
        talk.commit_offsets(at, **{**right, "member_id": "other"})
        talk.commit_offsets(at, **{**right, "member_id": ""})
        talk.commit_offsets(at)
        talk.commit_offsets(at, **{**right, "generation_id": -1})
        talk.commit_offsets(at, **right, group_instance_id="instance")
        if step == 0:
            talk.sync(joined.member_id, joined.generation_id, {joined.member_id: b""})
    talk.ended()
    talk.fetch({TOPIC: (0,)}, require_stable=True)


@CASES.add
def a_plain_commit_beside_a_pending_one(talk: PartitionTalk) -> None:
    talk.init()
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 10})
    talk.commit({(TOPIC, 0): 20})
    talk.fetch({TOPIC: (0,)})
    talk.fetch({TOPIC: (0,)}, require_stable=True)
    talk.ended()
    talk.fetch({TOPIC: (0,)}, require_stable=True)
    talk.commit({(TOPIC, 0): 30})
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 40})
    talk.ended()
    talk.fetch({TOPIC: (0,)}, require_stable=True)


@CASES.add
def a_group_deleted_while_offsets_are_pending(talk: PartitionTalk) -> None:
    talk.init()
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 10})
    talk.ask(dg.DeleteGroupsRequest(groups_names=(talk.group,)), 2)
    talk.ended()
    talk.fetch({TOPIC: (0,)}, require_stable=True)


# -- what is shown -------------------------------------------------------------------------------


@CASES.add
def what_is_described(talk: PartitionTalk) -> None:
    talk.describe("", "unknown")
    talk.init()
    talk.describe()
    talk.add({TOPIC: (2, 0), OTHER_TOPIC: (1,)})
    talk.describe(talk.group, talk.group)
    talk.ended()
    talk.describe()


@CASES.add
def what_is_listed(talk: PartitionTalk) -> None:
    talk.init()
    talk.list_own(duration_filter=3_600_000)
    talk.add(ONE)
    talk.list_own(version=0)
    talk.list_own(state_filters=("empty", "Bogus", "Ongoing"))
    talk.list_own(state_filters=("Empty",))
    talk.list_own(producer_id_filters=(talk.me.producer_id,))
    talk.list_own(producer_id_filters=(-1,))
    talk.list_own(duration_filter=3_600_000)
    talk.ended()
