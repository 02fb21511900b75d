"""Requests for the controller sent to another broker, and a controller's requests of yesterday."""

from __future__ import annotations

from typing import Any

from ottla.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.apis.alter_partition import AlterPartitionRequest
from ottla.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.apis.controlled_shutdown import ControlledShutdownRequest
from ottla.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.apis.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ottla.wire.apis.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.wire.apis.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from ottla.wire.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.wire.apis.update_metadata import UpdateMetadataRequest
from support.differential.batches_to_send import a_batch
from support.differential.cases.produce import end_offset, produce
from support.differential.talk import Cases, Talk

CASES = Cases()


def versions_of(cls: Any, first: int | None = None) -> list[int]:
    low, high = cls.spec.versions
    return list(range(low if first is None else first, high + 1))


@CASES.add_for(*versions_of(CreateTopicsRequest))
def create_topics_is_for_the_controller(talk: Talk, version: int) -> None:
    talk.ask(CreateTopicsRequest(topics=[CreatableTopic("new", 1, 1)]), version)


@CASES.add_for(1, 5, 6)
def delete_topics_is_for_the_controller(talk: Talk, version: int) -> None:
    if version >= 6:
        request = DeleteTopicsRequest(topics=[DeleteTopicState("nobody")])
    else:
        request = DeleteTopicsRequest(topic_names=("nobody",))
    talk.ask(request, version)


@CASES.add_for(0, 1, 3)
def create_partitions_is_for_the_controller(talk: Talk, version: int) -> None:
    talk.ask(CreatePartitionsRequest(topics=[CreatePartitionsTopic(talk.topic("tiny"), 99, None)]), version)


@CASES.add_for(0, 1, 2)
def elect_leaders_is_for_the_controller(talk: Talk, version: int) -> None:
    talk.ask(ElectLeadersRequest(topic_partitions=[TopicPartitions(talk.topic(), (0,))]), version)
    talk.ask(ElectLeadersRequest(topic_partitions=None), version, note="all")


@CASES.add
def reassignments_are_for_the_controller(talk: Talk) -> None:
    moved = [ReassignableTopic(talk.topic(), [ReassignablePartition(0, (99,))])]
    talk.ask(AlterPartitionReassignmentsRequest(topics=moved), 0)
    talk.ask(ListPartitionReassignmentsRequest(), 0)


@CASES.add_for(0, 1)
def update_features_is_for_the_controller(talk: Talk, version: int) -> None:
    talk.ask(UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("f", 1)]), version)


@CASES.add
def what_brokers_ask_the_controller(talk: Talk) -> None:
    target = talk.target
    for version in versions_of(AlterPartitionRequest):
        talk.ask(AlterPartitionRequest(target.node_id, target.broker_epoch), version)
    talk.ask(AllocateProducerIdsRequest(target.node_id, target.broker_epoch), 0)


@CASES.add_for(0, 1, 2, 3)
def controlled_shutdown_is_for_the_controller(talk: Talk, version: int) -> None:
    talk.ask(ControlledShutdownRequest(99, 12345 if version >= 2 else -1), version)


def leader_and_isr(talk: Talk, version: int, *, controller_epoch: int, broker_epoch: int, note: str) -> None:
    target = talk.target
    state = LeaderAndIsrPartitionState(
        topic_name=talk.topic() if version < 2 else "",
        partition_index=talk.partition,
        controller_epoch=controller_epoch,
        leader=target.node_id,
        leader_epoch=99,
        isr=(target.node_id,),
        replicas=(target.node_id,),
    )
    request = LeaderAndIsrRequest(
        controller_id=target.controller_id, controller_epoch=controller_epoch, broker_epoch=broker_epoch
    )
    if version < 2:
        request.ungrouped_partition_states = [state]
    else:
        request.topic_states = [LeaderAndIsrTopicState(talk.topic(), talk.topic_id(), [state])]
    talk.ask(request, version, note=note)


@CASES.add_for(*range(8))
def leader_and_isr_of_an_old_controller(talk: Talk, version: int) -> None:
    leader_and_isr(
        talk, version, controller_epoch=0, broker_epoch=talk.target.broker_epoch, note="old controller"
    )
    if version >= 2:
        leader_and_isr(
            talk,
            version,
            controller_epoch=talk.target.controller_epoch,
            broker_epoch=5,
            note="old broker epoch",
        )
    produce(talk, a_batch())


@CASES.add_for(0, 2, 5, 7)
def leader_and_isr_with_nothing_to_do(talk: Talk, version: int) -> None:
    target = talk.target
    request = LeaderAndIsrRequest(
        controller_id=target.controller_id,
        controller_epoch=target.controller_epoch,
        broker_epoch=target.broker_epoch,
    )
    talk.ask(request, version)


@CASES.add_for(7)
def leader_and_isr_with_what_is_known_already(talk: Talk, version: int) -> None:
    target = talk.target
    for epoch, topic_id, note in ((0, talk.topic_id(), "same"), (0, bytes(range(16)), "other topic id")):
        state = LeaderAndIsrPartitionState(
            partition_index=talk.partition,
            controller_epoch=target.controller_epoch,
            leader=target.node_id,
            leader_epoch=epoch,
            isr=(target.node_id,),
            replicas=(target.node_id,),
        )
        request = LeaderAndIsrRequest(
            controller_id=target.controller_id,
            controller_epoch=target.controller_epoch,
            broker_epoch=target.broker_epoch,
            topic_states=[LeaderAndIsrTopicState(talk.topic(), topic_id, [state])],
        )
        talk.ask(request, version, note=note)
    produce(talk, a_batch())


@CASES.add_for(0, 1, 3, 4)
def stop_replica_of_an_old_controller(talk: Talk, version: int) -> None:
    target = talk.target
    for controller_epoch, broker_epoch, note in (
        (0, target.broker_epoch, "old controller"),
        (target.controller_epoch, 5, "old broker epoch"),
    ):
        if version < 1 and broker_epoch == 5:
            continue
        request = StopReplicaRequest(
            controller_id=target.controller_id,
            controller_epoch=controller_epoch,
            broker_epoch=broker_epoch if version >= 1 else -1,
        )
        if version >= 3:
            state = StopReplicaPartitionState(talk.partition, 0, True)
            request.topic_states = [StopReplicaTopicState(talk.topic(), [state])]
        talk.ask(request, version, note=note)
    produce(talk, a_batch())
    end_offset(talk)


@CASES.add
def stop_replica_of_what_is_not_here(talk: Talk) -> None:
    target = talk.target
    states = [
        StopReplicaTopicState("nobody", [StopReplicaPartitionState(0, 0, True)]),
        StopReplicaTopicState(talk.topic(), [StopReplicaPartitionState(talk.partition, -7, False)]),
    ]
    request = StopReplicaRequest(
        controller_id=target.controller_id,
        controller_epoch=target.controller_epoch,
        broker_epoch=target.broker_epoch,
        topic_states=states,
    )
    talk.ask(request, 4)


@CASES.add_for(0, 3, 5, 7, 8)
def update_metadata_of_an_old_controller(talk: Talk, version: int) -> None:
    target = talk.target
    request = UpdateMetadataRequest(
        controller_id=target.controller_id,
        controller_epoch=0,
        broker_epoch=target.broker_epoch if version >= 5 else -1,
    )
    talk.ask(request, version, note="old controller")
    if version >= 5:
        request = UpdateMetadataRequest(
            controller_id=target.controller_id, controller_epoch=target.controller_epoch, broker_epoch=5
        )
        talk.ask(request, version, note="old broker epoch")
