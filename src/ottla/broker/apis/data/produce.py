"""Produce 0-11: batches for the partitions led here (3-11; older record formats are refused).

Checks stand in Kafka's order. acks=0 gets no answer, and a closed connection on any error; acks=1 is answered
after the append; acks=all when every in-sync replica has the records.
"""

from typing import NamedTuple

from ottla.broker.clients.commit_waits import ParkedProduce
from ottla.broker.clients.leader_hints import LeaderHints
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.replicas.partition import Partition
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import INTERNAL_TOPICS
from ottla.records.batch import TRANSACTIONAL_BIT, BatchHeader, Buffer
from ottla.records.validate import Refused, parse_produced
from ottla.storage.log.outcomes import Appended, Duplicate
from ottla.wire.apis.leader_hint import LeaderIdAndEpoch, NodeEndpoint
from ottla.wire.apis.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

OLDEST_SERVED = 3
LEADER_HINTS_SINCE = 10
TRANSACTION_ABORTABLE_SINCE = 11
ADMIN_CLIENT = "__admin_client"
CLOSED_TOPICS = INTERNAL_TOPICS | {"__share_group_state"}

_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_UNKNOWN_TOPIC = Refused(int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
_INVALID_ACKS = Refused(int(ErrorCode.INVALID_REQUIRED_ACKS))
_INVALID_TOPIC = Refused(int(ErrorCode.INVALID_TOPIC_EXCEPTION))
_NO_TRANSACTIONAL_ID = Refused(int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
_SEVERAL_PRODUCERS = Refused(
    int(ErrorCode.INVALID_PRODUCER_ID_MAPPING), "Transactional records contained more than one producer ID"
)
_STORAGE_ERROR = Refused(int(ErrorCode.KAFKA_STORAGE_ERROR))
_UNSUPPORTED_VERSION = Refused(int(ErrorCode.UNSUPPORTED_VERSION))
_UNVERIFIED = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


_KNOWN_ACKS = (-1, 1, 0)
_EXPLAINED = (
    int(ErrorCode.NOT_ENOUGH_REPLICAS),
    int(ErrorCode.INVALID_TXN_STATE),
    int(ErrorCode.INVALID_PRODUCER_ID_MAPPING),
)
"""Only what is wrong with a transaction gives these a text."""

_EXPECTED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""What Kafka leaves out of the failed produce requests: clients run into it in the best of clusters."""

Tokens = dict[TopicPartition, int | Refused]
"""By partition the token of the check that must come before a transaction begins there, or why none may."""


class Batch(NamedTuple):
    """What the request holds for one partition."""

    topic: str
    partition: int
    records: Buffer | None
    header: BatchHeader | Refused


def handle(node: Node, request: Request, body: ProduceRequest) -> ProduceResponse | None:
    """Append what may be appended; answer as the producer's acks ask."""
    version = request.api_version
    if version >= OLDEST_SERVED and len(body.topic_data) == 1 and len(body.topic_data[0].partition_data) == 1:
        topic, data = body.topic_data[0].name, body.topic_data[0].partition_data[0]
        header = parse_produced(data.records, version)
        if not isinstance(header, Refused) and not header[6] & TRANSACTIONAL_BIT:
            return _handle_one(node, request, body, Batch(topic, data.index, data.records, header))
    return _handle_any(node, request, body)


def _handle_one(node: Node, request: Request, body: ProduceRequest, batch: Batch) -> ProduceResponse | None:
    """One batch outside any transaction: what nearly every request is."""
    acks = body.acks
    result, written = _append(node, batch, acks, None, request.client_id == ADMIN_CLIENT)
    if acks == 1 and written is not None:
        return ProduceResponse([TopicProduceResponse(batch.topic, [result])])
    waits = [(*written, result)] if acks == -1 and written is not None else []
    return _finish(node, request, acks, body.timeout_ms, [(batch, result)], waits)


def answer_one(
    node: Node,
    request: Request,
    acks: int,
    timeout_ms: int,
    batch: Batch,
    partition: Partition,
    outcome: Appended | Duplicate | Refused,
) -> ProduceResponse | None:
    """The answer to a request of one batch, whatever came of its append; None if it waits."""
    result, written = _result(node, batch, partition, outcome)
    waits = [(*written, result)] if acks == -1 and written is not None else []
    return _finish(node, request, acks, timeout_ms, [(batch, result)], waits)


def _handle_any(node: Node, request: Request, body: ProduceRequest) -> ProduceResponse | None:
    """Several batches, transactions, or something wrong."""
    version = request.api_version
    batches: list[Batch] = []
    spoiled: Refused | None = _UNSUPPORTED_VERSION if version < OLDEST_SERVED else None
    is_transactional = False
    for topic in body.topic_data:
        for data in topic.partition_data:
            header = parse_produced(data.records, version)
            batches.append(Batch(topic.name, data.index, data.records, header))
            if isinstance(header, Refused):
                if header.spoils_request and spoiled is None:
                    spoiled = header
            elif header[6] & TRANSACTIONAL_BIT:
                is_transactional = True
    if len(batches) > 1:
        batches = list({(batch.topic, batch.partition): batch for batch in batches}.values())
    if spoiled is None and is_transactional:
        spoiled = _refuse_transaction(body, batches)
    if spoiled is not None:
        results = [(batch, _refusal(batch.partition, spoiled, -1)) for batch in batches]
        return _finish(node, request, body.acks, body.timeout_ms, results, [])
    tokens: Tokens | None = None
    if is_transactional and node.config.transactions.transaction_partition_verification_enable:
        tokens = _begin_verification(node, batches)
        if any(isinstance(token, int) for token in tokens.values()):
            _verify_first(node, request, body, batches, tokens)
            return None
    return _append_all(node, request, body, batches, tokens)


def _refuse_transaction(body: ProduceRequest, batches: list[Batch]) -> Refused | None:
    if body.transactional_id is None:
        return _NO_TRANSACTIONAL_ID
    producers = {
        (batch.header.producer_id, batch.header.producer_epoch)
        for batch in batches
        if isinstance(batch.header, BatchHeader) and batch.header.is_transactional
    }
    return _SEVERAL_PRODUCERS if len(producers) > 1 else None


# --- append -----------------------------------------------------------------------------------------------


def _append_all(
    node: Node,
    request: Request,
    body: ProduceRequest,
    batches: list[Batch],
    tokens: Tokens | None,
) -> ProduceResponse | None:
    """Each batch to its partition; without ``tokens`` no transaction need be verified."""
    acks = body.acks
    is_admin = request.client_id == ADMIN_CLIENT
    results: list[tuple[Batch, PartitionProduceResponse]] = []
    waits: list[tuple[Partition, int, PartitionProduceResponse]] = []
    for batch in batches:
        result, written = _append(node, batch, acks, tokens, is_admin)
        results.append((batch, result))
        if acks == -1 and written is not None:
            waits.append((*written, result))
    return _finish(node, request, body.acks, body.timeout_ms, results, waits)


def _append(
    node: Node, batch: Batch, acks: int, tokens: Tokens | None, is_admin: bool
) -> tuple[PartitionProduceResponse, tuple[Partition, int] | None]:
    """The batch's row of the answer; and where its records end, if they were written."""
    topic, index, records, header = batch
    token = tokens.get(TopicPartition(topic, index)) if tokens is not None else None
    partition = _find(node, batch, acks, token, is_admin)
    if isinstance(partition, Refused):
        if not isinstance(header, Refused):
            node.producer_order.note_refused(TopicPartition(topic, index), header, partition)
        return _refusal(index, partition, -1), None
    assert records is not None, "what has no records was refused"
    assert not isinstance(header, Refused), "and what has no header"
    if tokens is None:
        outcome = partition.append(records, header, acks)
    else:
        assert not isinstance(token, Refused), "what was not verified was refused"
        outcome = partition.append(records, header, acks, verification=token, must_be_verified=True)
    return _result(node, batch, partition, outcome)


def _result(
    node: Node, batch: Batch, partition: Partition, outcome: Appended | Duplicate | Refused
) -> tuple[PartitionProduceResponse, tuple[Partition, int] | None]:
    if isinstance(outcome, Refused):
        assert not isinstance(batch.header, Refused), "what has no header was never appended"
        node.meters.produces_failed += outcome.error not in _EXPECTED
        node.producer_order.note_refused(partition.name, batch.header, outcome)
        log_start_offset = partition.log.log_start_offset if outcome.while_appending else -1
        return _refusal(batch.partition, outcome, log_start_offset), None
    result = PartitionProduceResponse(
        batch.partition, 0, outcome.base_offset, outcome.log_append_time_ms, outcome.log_start_offset
    )
    return result, (partition, outcome.last_offset + 1)


def _find(
    node: Node, batch: Batch, acks: int, token: "int | Refused | None", is_admin: bool
) -> Partition | Refused:
    """The partition to append to, or the first reason why not."""
    topic, index, _, header = batch
    known = node.metadata.topics.get(topic)
    if known is None or index not in known.partitions:
        return _UNKNOWN_TOPIC
    if isinstance(header, Refused):
        return header
    if isinstance(token, Refused):
        return token
    if acks not in _KNOWN_ACKS:
        return _INVALID_ACKS
    if topic in CLOSED_TOPICS and not is_admin:
        return _INVALID_TOPIC
    partition = node.partitions.find(topic, index)
    return partition if partition is not None else Refused(int(node.partitions.why_missing(topic, index)))


# --- answer -----------------------------------------------------------------------------------------------


def _finish(
    node: Node,
    request: Request,
    acks: int,
    timeout_ms: int,
    results: list[tuple[Batch, PartitionProduceResponse]],
    waits: list[tuple[Partition, int, PartitionProduceResponse]],
) -> ProduceResponse | None:
    if acks == 0:
        _finish_silently(request, results)
        return None
    response = _response(node, request, results)
    parked: ParkedProduce | None = None
    for partition, end_offset, result in waits:
        leader = partition.leader
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER if leader is None else leader.append_outcome(end_offset)
        if code is not None:
            result.error_code = int(code)
            continue
        if parked is None:
            parked = ParkedProduce(node.waiting, request, response)
        parked.wait_for(partition, end_offset, result)
    if parked is None:
        return response
    node.waiting.deadlines.add(parked, max(0, timeout_ms))
    return None


def _finish_silently(request: Request, results: list[tuple[Batch, PartitionProduceResponse]]) -> None:
    """Nobody waits for an answer; a closed connection is the only way to say that something failed."""
    failed = next((result.error_code for _, result in results if result.error_code), 0)
    if failed:
        request.hang_up(f"produce with acks=0 failed: {ErrorCode(failed).name}")
    else:
        request.reply_nothing()


def _response(
    node: Node, request: Request, results: list[tuple[Batch, PartitionProduceResponse]]
) -> ProduceResponse:
    topics: dict[str, TopicProduceResponse] = {}
    hints: LeaderHints | None = None
    for batch, result in results:
        if result.error_code == _NOT_LEADER and request.api_version >= LEADER_HINTS_SINCE:
            hints = hints or LeaderHints(node.partitions, node.metadata, request.listener)
            result.current_leader = LeaderIdAndEpoch(*hints.current_leader(batch.topic, batch.partition))
        topic = topics.get(batch.topic)
        if topic is None:
            topics[batch.topic] = TopicProduceResponse(batch.topic, [result])
        else:
            topic.partition_responses.append(result)
    response = ProduceResponse(list(topics.values()))
    if hints is not None:
        response.node_endpoints = [NodeEndpoint(*each) for each in hints.endpoints()]
    return response


def _refusal(index: int, refused: Refused, log_start_offset: int) -> PartitionProduceResponse:
    """Kafka explains only what it refused record by record, or could not even parse."""
    has_text = refused.record_errors or refused.spoils_request or refused.error in _EXPLAINED
    return PartitionProduceResponse(
        index=index,
        error_code=refused.error,
        base_offset=-1,
        log_start_offset=log_start_offset,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=each.batch_index, batch_index_error_message=each.message)
            for each in refused.record_errors
        ],
        error_message=refused.message if has_text else None,
    )


# --- transactions that must be verified first ---------------------------------------------------------------


def _begin_verification(node: Node, batches: list[Batch]) -> Tokens:
    """Which partitions a transaction would begin on. One that is open needs no token, and one that is not
    led here gets none: it may be led here by the time of the coordinator's answer."""
    tokens: Tokens = {}
    for topic, index, _, header in batches:
        if isinstance(header, Refused) or not header.is_transactional:
            continue
        partition = node.partitions.find(topic, index)
        if partition is None or partition.leader is None:
            refused = Refused(int(node.partitions.why_missing(topic, index)))
            tokens[TopicPartition(topic, index)] = refused
            continue
        try:
            token = partition.log.producers.start_verification(
                header.producer_id, header.producer_epoch, header.base_sequence, node.clock.wall_ms()
            )
        except LogDirectoryFailed as failed:
            node.partitions.directory_failed(failed)
            tokens[TopicPartition(topic, index)] = _STORAGE_ERROR
            continue
        if token is not None:
            tokens[TopicPartition(topic, index)] = token
    return tokens


def _verify_first(
    node: Node,
    request: Request,
    body: ProduceRequest,
    batches: list[Batch],
    tokens: Tokens,
) -> None:
    """Ask the coordinator whether the partitions are in the transaction (KIP-890), then append.

    The request's bytes are only lent: what waits is copied.
    """
    kept = [
        batch._replace(records=bytearray(batch.records) if batch.records is not None else None)
        for batch in batches
    ]
    header = next(
        batch.header
        for batch in batches
        if isinstance(batch.header, BatchHeader) and batch.header.is_transactional
    )
    assert body.transactional_id is not None, "checked before"

    def answered(errors: dict[TopicPartition, ErrorCode]) -> None:
        verified: Tokens = {
            name: _refuse_unverified(errors.get(name, ErrorCode.NONE), request.api_version) or token
            for name, token in tokens.items()
        }
        response = _append_all(node, request, body, kept, verified)
        if response is not None:
            request.reply(response)

    asked = [name for name, token in tokens.items() if isinstance(token, int)]
    node.transaction_verifier.verify(
        body.transactional_id, header.producer_id, header.producer_epoch, asked, answered
    )


def _refuse_unverified(error: ErrorCode, version: int) -> Refused | None:
    """The coordinator's answer in the words of Produce."""
    if error is ErrorCode.NONE:
        return None
    if error in _UNVERIFIED:
        text = "Unable to verify the partition has been added to the transaction. Underlying error: "
        return Refused(int(ErrorCode.NOT_ENOUGH_REPLICAS), text + error.name)
    if error is ErrorCode.PRODUCER_FENCED:
        return Refused(int(ErrorCode.INVALID_PRODUCER_EPOCH))
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < TRANSACTION_ABORTABLE_SINCE:
        text = "Partition was not added to the transaction"
        return Refused(int(ErrorCode.INVALID_TXN_STATE), text)
    return Refused(int(error))
