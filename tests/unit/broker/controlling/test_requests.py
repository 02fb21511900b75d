"""What is encoded once and shared has the same bytes as what is encoded for each broker alone."""

from ottla.broker.controlling.requests import ControllerRequests
from ottla.controller.effects import (
    LeaderAndIsrEntry,
    MetadataEntry,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    StopEntry,
)
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment
from ottla.wire.apis.leader_and_isr import LeaderAndIsrRequest
from ottla.wire.apis.update_metadata import UpdateMetadataRequest
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.headers import decode_request_header, frame_request
from support.bench.controller_world import broker

IDS = tuple(map(BrokerId, (3, 1, 2)))
STATE = LeaderAndIsr(BrokerId(3), LeaderEpoch(7), IDS[:2], 9, 4, LeaderRecoveryState.RECOVERING)
ASSIGNMENT = ReplicaAssignment(IDS, IDS[1:2], IDS[2:])
TOPIC_ID = TopicId(b"0123456789abcdef")


def entries() -> tuple[LeaderAndIsrEntry, ...]:
    return tuple(
        LeaderAndIsrEntry(TopicPartition(topic, index), TOPIC_ID, STATE, ASSIGNMENT, index == 1)
        for topic in ("orders", "payments")
        for index in (0, 1)
    )


def test_leader_and_isr_reads_back_as_it_was_meant():
    requests = ControllerRequests(BrokerId(8), 5)

    made = requests.leader_and_isr(SendLeaderAndIsr(BrokerId(3), 77, entries(), "why"))
    frame = b"".join(frame_request(made, 7, 1, "8"))[4:]  # type: ignore[arg-type]
    header, offset = decode_request_header(frame)
    read = decode(LeaderAndIsrRequest, 7, frame, offset)

    assert (header.api_key, header.api_version, header.client_id) == (4, 7, "8")
    assert (read.controller_id, read.controller_epoch, read.broker_epoch, read.type) == (8, 5, 77, 0)
    assert [topic.topic_name for topic in read.topic_states] == ["orders", "payments"]
    row = read.topic_states[1].partition_states[1]
    assert (row.leader, row.leader_epoch, row.isr, row.partition_epoch) == (3, 7, (3, 1), 9)
    assert (row.replicas, row.adding_replicas, row.removing_replicas) == ((3, 1, 2), (1,), (2,))
    assert (row.is_new, row.leader_recovery_state, row.controller_epoch) == (True, 1, 4)
    assert encode_bytes(read, 7) == made.head + made.rest


def test_brokers_that_are_told_alike_share_the_bytes():
    requests = ControllerRequests(BrokerId(8), 5)
    shared = entries()

    one = requests.leader_and_isr(SendLeaderAndIsr(BrokerId(1), 11, shared, "why"))
    two = requests.leader_and_isr(SendLeaderAndIsr(BrokerId(2), 22, (*shared[:2], *shared[2:]), "why"))
    other = requests.leader_and_isr(SendLeaderAndIsr(BrokerId(3), 33, shared[:1], "why"))

    assert one.rest is two.rest
    assert one.head != two.head
    assert other.rest != one.rest


def test_update_metadata_is_encoded_once_for_all_targets():
    rows = tuple(MetadataEntry(e.partition, TOPIC_ID, STATE, IDS, IDS[1:]) for e in entries())
    order = SendUpdateMetadata(
        ((BrokerId(1), 11), (BrokerId(2), 22)), rows, (broker(1, 11), broker(2, 22)), "why"
    )

    made = dict(ControllerRequests(BrokerId(8), 5).update_metadata(order))
    read = decode(UpdateMetadataRequest, 8, made[BrokerId(2)].head + made[BrokerId(2)].rest)

    assert made[BrokerId(1)].rest is made[BrokerId(2)].rest
    assert (read.controller_id, read.controller_epoch, read.broker_epoch) == (8, 5, 22)
    assert [(b.id, b.endpoints[0].host, b.rack) for b in read.live_brokers] == [
        (1, "host1", None),
        (2, "host2", None),
    ]
    row = read.topic_states[0].partition_states[1]
    assert (row.leader, row.zk_version, row.replicas, row.offline_replicas) == (3, 9, (3, 1, 2), (1, 2))
    assert encode_bytes(read, 8) == made[BrokerId(2)].head + made[BrokerId(2)].rest


def test_stop_replica_groups_by_topic():
    order = SendStopReplica(
        BrokerId(1),
        11,
        (
            StopEntry(TopicPartition("orders", 0), LeaderEpoch(4), False),
            StopEntry(TopicPartition("payments", 0), LeaderEpoch(-2), True),
            StopEntry(TopicPartition("orders", 1), LeaderEpoch(5), True),
        ),
        "why",
    )

    made = ControllerRequests(BrokerId(8), 5).stop_replica(order)

    assert [
        (t.topic_name, [(p.partition_index, p.leader_epoch, p.delete_partition) for p in t.partition_states])
        for t in made.topic_states
    ] == [("orders", [(0, 4, False), (1, 5, True)]), ("payments", [(0, -2, True)])]
    assert (made.controller_id, made.controller_epoch, made.broker_epoch) == (8, 5, 11)
