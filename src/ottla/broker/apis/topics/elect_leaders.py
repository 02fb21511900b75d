"""ElectLeaders 0-2: the controller holds preferred or unclean elections; answered when they are seen."""

from collections.abc import Mapping

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.controller.effects import LeadersElected, Result
from ottla.controller.events import ElectionType, ElectLeadersRequested, Token
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import TopicPartition
from ottla.wire.apis.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_NOT_CONTROLLER = Refusal(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")


def handle(node: Node, request: Request, body: ElectLeadersRequest) -> ElectLeadersResponse | None:
    """Null means all partitions; then those that need no election are not named."""
    partitions: tuple[TopicPartition, ...] | None = None
    if body.topic_partitions is not None:
        partitions = tuple(
            TopicPartition(topic.topic, index)
            for topic in body.topic_partitions
            for index in topic.partitions
        )
    if body.election_type not in (ElectionType.PREFERRED, ElectionType.UNCLEAN):
        answer = _response(dict.fromkeys(partitions or (), Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)))
        answer.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        return answer
    election = ElectionType(body.election_type)

    def make_event(token: Token) -> ElectLeadersRequested:
        return ElectLeadersRequested(token, election, partitions, f"ElectLeaders {election.name.lower()}")

    def then(result: Result | None) -> None:
        if not isinstance(result, LeadersElected):
            asked = _all_known(node) if partitions is None else partitions
            request.reply(_response(dict.fromkeys(asked, _NOT_CONTROLLER)))
        else:
            _wait(node, request, result.results, body.timeout_ms)

    node.controller.ask(make_event, then, request)
    return None


def _all_known(node: Node) -> list[TopicPartition]:
    """Clients find out by the rows that they asked the wrong broker, so that there must be some."""
    topics = node.metadata.topics.items()
    return [TopicPartition(name, index) for name, topic in topics for index in topic.partitions]


def _wait(node: Node, request: Request, results: Mapping[TopicPartition, Refusal], timeout_ms: int) -> None:
    """An election is over for the client once this broker's own metadata show the leader."""
    term = node.controller.term
    expected: dict[TopicPartition, int] = {}
    for key, result in results.items():
        partition = None if term is None else term.core.context.partitions.get(key)
        if result.error is ErrorCode.NONE and partition is not None and partition.state is not None:
            expected[key] = partition.state.leader_epoch

    def is_seen(key: TopicPartition) -> bool:
        info = node.metadata.partition(key)
        return info is not None and info.leader_epoch >= expected[key]

    def then(in_time: bool) -> None:
        late = (
            {}
            if in_time
            else {key: Refusal(ErrorCode.REQUEST_TIMED_OUT) for key in expected if not is_seen(key)}
        )
        request.reply(_response({**results, **late}))

    node.metadata_waits.wait(lambda: all(map(is_seen, expected)), timeout_ms, then)


def _response(results: Mapping[TopicPartition, Refusal]) -> ElectLeadersResponse:
    topics: dict[str, list[PartitionResult]] = {}
    for (topic, index), refusal in results.items():
        row = PartitionResult(partition_id=index, error_code=refusal.error, error_message=refusal.why)
        topics.setdefault(topic, []).append(row)
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=rows) for topic, rows in topics.items()
        ]
    )
