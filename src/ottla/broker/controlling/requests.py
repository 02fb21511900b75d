"""The controller's effects as control requests. What many brokers are told alike is encoded once."""

from collections.abc import Iterable, Sequence
from struct import Struct as Packer
from typing import Any, ClassVar

from ottla.controller.effects import (
    LeaderAndIsrEntry,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
)
from ottla.model.cluster import BrokerRegistration
from ottla.model.ids import BrokerId
from ottla.wire.apis.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ottla.wire.apis.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from ottla.wire.apis.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ottla.wire.codec import encode_bytes
from ottla.wire.fields import Spec
from ottla.wire.keys import ApiKey
from ottla.wire.primitives import Buffer

LEADER_AND_ISR_VERSION = 7
UPDATE_METADATA_VERSION = 8
STOP_REPLICA_VERSION = 4
ENCODINGS_KEPT = 200

_LEADER_AND_ISR_HEAD = Packer(">i?iqb")
_UPDATE_METADATA_HEAD = Packer(">i?iq")


class _Prepared:
    """A request whose body is encoded already: a head of its own, and a rest that it shares with others."""

    __slots__ = ("head", "rest")
    spec: ClassVar[Spec]

    def __init__(self, head: bytes, rest: bytes) -> None:
        self.head = head
        self.rest = rest


def _parts(message: _Prepared) -> list[Buffer]:
    return [message.head, message.rest]


def _prepared_spec(version: int, flexible: int, api_key: ApiKey) -> Spec:
    spec = Spec(versions=(version, version), flexible=flexible, api_key=api_key)
    spec.encoders[version] = _parts
    return spec


class PreparedLeaderAndIsrRequest(_Prepared):
    """LeaderAndIsr 7."""

    spec: ClassVar[Spec] = _prepared_spec(LEADER_AND_ISR_VERSION, 4, ApiKey.LEADER_AND_ISR)


class PreparedUpdateMetadataRequest(_Prepared):
    """UpdateMetadata 8."""

    spec: ClassVar[Spec] = _prepared_spec(UPDATE_METADATA_VERSION, 6, ApiKey.UPDATE_METADATA)


class ControllerRequests:
    """Writes the requests of one term; keeps the last encodings, because replicas are told alike."""

    def __init__(self, controller: BrokerId, controller_epoch: int) -> None:
        self._controller = controller
        self._controller_epoch = controller_epoch
        self._encoded: dict[int, tuple[tuple[LeaderAndIsrEntry, ...], bytes]] = {}
        """The last encodings, by the identity of their first entry."""

    def leader_and_isr(self, effect: SendLeaderAndIsr) -> PreparedLeaderAndIsrRequest:
        """LeaderAndIsr for one broker."""
        head = _LEADER_AND_ISR_HEAD.pack(
            self._controller, False, self._controller_epoch, effect.broker_epoch, 0
        )
        return PreparedLeaderAndIsrRequest(head, self._rest_of(effect.entries))

    def _rest_of(self, entries: tuple[LeaderAndIsrEntry, ...]) -> bytes:
        known = self._encoded.get(id(entries[0]))
        if known is not None and _are_same(entries, known[0]):
            return known[1]
        rest = _leader_and_isr_rest(entries)
        if len(self._encoded) >= ENCODINGS_KEPT:
            self._encoded.clear()
        self._encoded[id(entries[0])] = (entries, rest)
        return rest

    def forget_encodings(self) -> None:
        """The turn is over: the next one has entries of its own."""
        self._encoded.clear()

    def update_metadata(
        self, effect: SendUpdateMetadata
    ) -> Iterable[tuple[BrokerId, PreparedUpdateMetadataRequest]]:
        """UpdateMetadata for each of its targets."""
        rest = _update_metadata_rest(effect)
        for broker, epoch in effect.targets:
            head = _UPDATE_METADATA_HEAD.pack(self._controller, False, self._controller_epoch, epoch)
            yield broker, PreparedUpdateMetadataRequest(head, rest)

    def stop_replica(self, effect: SendStopReplica) -> StopReplicaRequest:
        """StopReplica for one broker."""
        topics: dict[str, list[StopReplicaPartitionState]] = {}
        for (topic, index), epoch, delete in effect.entries:
            states = topics.setdefault(topic, [])
            states.append(
                StopReplicaPartitionState(partition_index=index, leader_epoch=epoch, delete_partition=delete)
            )
        return StopReplicaRequest(
            controller_id=self._controller,
            controller_epoch=self._controller_epoch,
            broker_epoch=effect.broker_epoch,
            topic_states=[
                StopReplicaTopicState(topic_name=topic, partition_states=states)
                for topic, states in topics.items()
            ],
        )


def _are_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _leader_and_isr_rest(entries: Iterable[LeaderAndIsrEntry]) -> bytes:
    topics: dict[str, LeaderAndIsrTopicState] = {}
    for (name, index), topic_id, state, assignment, is_new in entries:
        topic = topics.get(name)
        if topic is None:
            topic = LeaderAndIsrTopicState(topic_name=name, topic_id=topic_id, partition_states=[])
            topics[name] = topic
        topic.partition_states.append(
            LeaderAndIsrPartitionState(
                partition_index=index,
                controller_epoch=state.controller_epoch,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=state.isr,
                partition_epoch=state.partition_epoch,
                replicas=assignment.replicas,
                adding_replicas=assignment.adding,
                removing_replicas=assignment.removing,
                is_new=is_new,
                leader_recovery_state=state.leader_recovery_state,
            )
        )
    request = LeaderAndIsrRequest(topic_states=list(topics.values()))
    return encode_bytes(request, LEADER_AND_ISR_VERSION)[_LEADER_AND_ISR_HEAD.size :]


def _update_metadata_rest(effect: SendUpdateMetadata) -> bytes:
    topics: dict[str, UpdateMetadataTopicState] = {}
    for (name, index), topic_id, state, replicas, offline in effect.entries:
        topic = topics.get(name)
        if topic is None:
            topic = UpdateMetadataTopicState(topic_name=name, topic_id=topic_id, partition_states=[])
            topics[name] = topic
        topic.partition_states.append(
            UpdateMetadataPartitionState(
                partition_index=index,
                controller_epoch=state.controller_epoch,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=state.isr,
                zk_version=state.partition_epoch,
                replicas=replicas,
                offline_replicas=offline,
            )
        )
    request = UpdateMetadataRequest(
        topic_states=list(topics.values()), live_brokers=[_live_broker(broker) for broker in effect.brokers]
    )
    return encode_bytes(request, UPDATE_METADATA_VERSION)[_UPDATE_METADATA_HEAD.size :]


def _live_broker(broker: BrokerRegistration) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=broker.broker,
        endpoints=[
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=endpoint.security_protocol,
            )
            for endpoint in broker.endpoints
        ],
        rack=broker.rack,
    )
