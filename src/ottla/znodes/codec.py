"""Kafka's znodes as JSON bytes, to and from the model's values.

Unknown keys of a node that we rewrite are kept in ``other``; readers tolerate keys they do not know.
The keys are Kafka 3.9's, so that its brokers and tools read what we write and the other way round.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import msgspec

from ottla.model.cluster import BrokerRegistration, Endpoint, SecurityProtocol
from ottla.model.ids import (
    BrokerId,
    LeaderEpoch,
    TopicId,
    TopicPartition,
    topic_id_from_text,
    topic_id_text,
)
from ottla.model.partition_state import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment

T = TypeVar("T")
write_json = msgspec.json.Encoder().encode

INT32_MAX = 2**31 - 1
Int32 = Annotated[int, msgspec.Meta(ge=-INT32_MAX - 1, le=INT32_MAX)]
"""The largest number that a request can carry; a larger one, written by hand, must not stop the others."""
Epoch = Annotated[int, msgspec.Meta(ge=-1, le=INT32_MAX - 1)]
"""The largest epoch that still has a next one."""


class MalformedZnode(ValueError):
    """A node holds what Kafka would not have written there."""


def read_json(data: bytes | None, as_type: type[T], what: str) -> T:
    """The node's JSON as that type, or ``MalformedZnode``."""
    if data is None:
        raise MalformedZnode(f"{what}: the node is empty")
    try:
        return msgspec.json.decode(data, type=as_type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedZnode(f"{what}: {error}") from None


def read_object(data: bytes | None, what: str) -> dict[str, Any]:
    """The node's JSON with all its keys."""
    return read_json(data, dict[str, Any], what)


def without_keys(fields: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The keys that we do not know, to be written back."""
    return {key: value for key, value in fields.items() if key not in known}


# ---- /brokers/ids/<id> --------------------------------------------------------------------------


class _Features(msgspec.Struct):
    min_version: int
    max_version: int


class _Broker(msgspec.Struct):
    version: int
    host: str | None = None
    port: Int32 = -1
    endpoints: list[str] = []
    listener_security_protocol_map: dict[str, str] = {}
    rack: str | None = None
    features: dict[str, _Features] = {}


def encode_broker(registration: BrokerRegistration, timestamp_ms: int) -> bytes:
    """A registration of version 5; host and port repeat the first plaintext endpoint for old clients."""
    plain = next(
        (e for e in registration.endpoints if e.security_protocol is SecurityProtocol.PLAINTEXT), None
    )
    fields: dict[str, Any] = {
        "features": {
            name: {"min_version": low, "max_version": high}
            for name, (low, high) in registration.features.items()
        },
        "listener_security_protocol_map": {
            endpoint.listener: endpoint.security_protocol.name for endpoint in registration.endpoints
        },
        "endpoints": [_endpoint_text(endpoint) for endpoint in registration.endpoints],
        "jmx_port": -1,
        "port": plain.port if plain else -1,
        "host": plain.host if plain else None,
        "version": 5,
        "timestamp": str(timestamp_ms),
    }
    if registration.rack is not None:
        fields["rack"] = registration.rack
    return write_json(fields)


def decode_broker(broker: BrokerId, data: bytes | None, epoch: int) -> BrokerRegistration:
    """A registration of any version; ``epoch`` is the node's czxid."""
    what = f"registration of broker {broker}"
    node = read_json(data, _Broker, what)
    protocols = node.listener_security_protocol_map
    if node.endpoints:
        endpoints = tuple(_endpoint_from(text, protocols, what) for text in node.endpoints)
    elif node.host is not None:
        endpoints = (Endpoint("PLAINTEXT", node.host, node.port),)
    else:
        raise MalformedZnode(f"{what}: it names no endpoint")
    features = {name: (range_.min_version, range_.max_version) for name, range_ in node.features.items()}
    return BrokerRegistration(broker, epoch, endpoints, node.rack, features)


def _endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _endpoint_from(text: str, protocols: Mapping[str, str], what: str) -> Endpoint:
    listener, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    listener = listener.upper()
    protocol = protocols.get(listener, listener)
    if not separator or not colon or not _is_port(port) or protocol not in SecurityProtocol.__members__:
        raise MalformedZnode(f"{what}: {text!r} is not an endpoint")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return Endpoint(listener, host, int(port), SecurityProtocol[protocol])


def _is_port(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 6


# ---- /controller, /controller_epoch, /cluster/id ------------------------------------------------


class _Controller(msgspec.Struct):
    brokerid: int
    kraftControllerEpoch: int = -1


@dataclass(frozen=True, slots=True)
class ControllerNode:
    """Who is the controller; a positive KRaft epoch means that a migration has taken over."""

    broker: BrokerId
    kraft_controller_epoch: int = -1


def encode_controller(broker: BrokerId, timestamp_ms: int) -> bytes:
    """What an elected controller writes."""
    return write_json(
        {"version": 2, "brokerid": broker, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1}
    )


def decode_controller(data: bytes | None) -> ControllerNode:
    """Who the node names."""
    node = read_json(data, _Controller, "controller")
    return ControllerNode(BrokerId(node.brokerid), node.kraftControllerEpoch)


def encode_controller_epoch(epoch: int) -> bytes:
    """Decimal text, no JSON."""
    return b"%d" % epoch


def decode_controller_epoch(data: bytes | None) -> int:
    """The epoch that fences controllers; the next one must still fit into a request."""
    epoch = _decimal(data, "controller epoch")
    if not 0 <= epoch < INT32_MAX:
        raise MalformedZnode(f"controller epoch: {epoch} has no next one")
    return epoch


def _decimal(data: bytes | None, what: str) -> int:
    digits = data or b""
    if not digits.removeprefix(b"-").isdigit() or len(digits) > 20:
        raise MalformedZnode(f"{what}: {digits[:40]!r} is not a number")
    return int(digits)


class _ClusterId(msgspec.Struct):
    id: str


def encode_cluster_id(cluster_id: str) -> bytes:
    """Kafka writes this version as text."""
    return write_json({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None) -> str:
    """The cluster's id."""
    return read_json(data, _ClusterId, "cluster id").id


# ---- /brokers/topics/<t> and its partitions -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class TopicNode:
    """A topic's id (``None`` only before Kafka 2.8) and who holds its partitions."""

    topic_id: TopicId | None
    partitions: dict[int, ReplicaAssignment]
    other: dict[str, Any] = field(default_factory=dict)


_TOPIC_KEYS = frozenset({"version", "topic_id", "partitions", "adding_replicas", "removing_replicas"})


def encode_topic(topic: TopicNode) -> bytes:
    """Version 3; the adding and removing maps name only partitions that are being reassigned."""
    assignments = topic.partitions.items()
    fields: dict[str, Any] = {"partitions": {str(number): a.replicas for number, a in assignments}}
    if topic.topic_id is not None:
        fields["topic_id"] = topic_id_text(topic.topic_id)
    fields["adding_replicas"] = {str(number): a.adding for number, a in assignments if a.adding}
    fields["removing_replicas"] = {str(number): a.removing for number, a in assignments if a.removing}
    fields["version"] = 3
    return write_json({**fields, **topic.other})


class _Topic(msgspec.Struct):
    partitions: dict[Int32, tuple[Int32, ...]]
    topic_id: str | None = None
    adding_replicas: dict[Int32, tuple[Int32, ...]] = {}
    removing_replicas: dict[Int32, tuple[Int32, ...]] = {}


def decode_topic(name: str, data: bytes | None) -> TopicNode:
    """A topic node of version 1, 2 or 3."""
    what = f"topic {name}"
    fields = read_object(data, what)
    try:
        node = msgspec.convert(fields, _Topic, str_keys=True)
        topic_id = None if node.topic_id is None else topic_id_from_text(node.topic_id)
    except ValueError as error:
        raise MalformedZnode(f"{what}: {error}") from None
    return TopicNode(topic_id, _assignments(node), without_keys(fields, _TOPIC_KEYS))


def _assignments(node: _Topic) -> dict[int, ReplicaAssignment]:
    """Equal assignments are one object: of ten thousand partitions most share a few."""
    adding, removing = node.adding_replicas, node.removing_replicas
    at_rest: dict[tuple[int, ...], ReplicaAssignment] = {}
    found = {}
    for number, replicas in node.partitions.items():
        held = tuple(replicas)
        assignment = at_rest.get(held)
        if assignment is None:
            assignment = at_rest[held] = ReplicaAssignment(_brokers(held))
        if number in adding or number in removing:
            assignment = ReplicaAssignment(
                assignment.replicas, _brokers(adding.get(number, ())), _brokers(removing.get(number, ()))
            )
        found[number] = assignment
    return found


def _brokers(numbers: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(number) for number in numbers)


class _State(msgspec.Struct):
    leader: Int32
    leader_epoch: Epoch
    isr: tuple[Int32, ...]
    controller_epoch: Int32
    leader_recovery_state: int = 0


_state_decoder = msgspec.json.Decoder(_State)


_STATE_KEYS = frozenset(
    {"version", "leader", "leader_epoch", "isr", "controller_epoch", "leader_recovery_state"}
)


def encode_partition_state(state: LeaderAndIsr, previous: bytes | None = None) -> bytes:
    """Version 1; keys of ``previous`` that we do not know are kept.

    The partition epoch is not in it: it is the node's version.
    """
    fields: dict[str, Any] = {
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": 1,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
    }
    if state.leader_recovery_state is not LeaderRecoveryState.RECOVERED:
        fields["leader_recovery_state"] = int(state.leader_recovery_state)
    if previous is not None:
        fields |= without_keys(read_object(previous, "partition state"), _STATE_KEYS)
    return write_json(fields)


def decode_partition_state(
    data: bytes | None, partition_epoch: int, shared: dict[Any, Any] | None = None
) -> LeaderAndIsr:
    """``partition_epoch`` is the version of the node that was read; equal ISRs become one in ``shared``."""
    try:
        node = _state_decoder.decode(data or b"")
        number = node.leader_recovery_state
        recovery = LeaderRecoveryState(number) if number else LeaderRecoveryState.RECOVERED
    except ValueError as error:
        raise MalformedZnode(f"partition state: {error}") from None
    isr = node.isr if shared is None else shared.setdefault(node.isr, node.isr)
    return LeaderAndIsr(
        BrokerId(node.leader),
        LeaderEpoch(node.leader_epoch),
        isr,  # type: ignore[arg-type]  # a NewType costs nothing at run time, a loop would
        partition_epoch,
        node.controller_epoch,
        recovery,
    )


# ---- lists of partitions ------------------------------------------------------------------------


class _Partition(msgspec.Struct):
    topic: str
    partition: int


class _Partitions(msgspec.Struct):
    partitions: list[_Partition]


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """For preferred replica elections and for ISR change notifications."""
    return write_json(
        {"version": 1, "partitions": [{"topic": topic, "partition": number} for topic, number in partitions]}
    )


def decode_partitions(data: bytes | None) -> tuple[TopicPartition, ...]:
    """The partitions named by an election request or an ISR change notification."""
    node = read_json(data, _Partitions, "list of partitions")
    return tuple(TopicPartition(entry.topic, entry.partition) for entry in node.partitions)


class _Move(msgspec.Struct):
    topic: str
    partition: int
    replicas: tuple[int, ...]


class _Moves(msgspec.Struct):
    partitions: list[_Move]


def encode_reassignment(moves: Mapping[TopicPartition, tuple[BrokerId, ...]]) -> bytes:
    """What legacy tools write to ``/admin/reassign_partitions``."""
    rows = [
        {"topic": topic, "partition": number, "replicas": replicas}
        for (topic, number), replicas in moves.items()
    ]
    return write_json({"version": 1, "partitions": rows})


def decode_reassignment(data: bytes | None) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """The wanted replicas of each partition."""
    node = read_json(data, _Moves, "reassignment")
    return {TopicPartition(row.topic, row.partition): _brokers(row.replicas) for row in node.partitions}
