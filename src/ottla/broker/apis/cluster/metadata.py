"""Metadata 0-12: brokers, controller and topics, all from what the controller told this broker."""

from collections.abc import Collection, Iterable

from ottla.broker.access.access import Access
from ottla.broker.clients import authorized_operations
from ottla.broker.clients.request import Request
from ottla.broker.metadata.encoding import frame_with_topics
from ottla.broker.metadata.image import LiveBroker, MetadataImage, PartitionInfo, TopicInfo
from ottla.broker.node import Node
from ottla.model import topic_names
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER, ZERO_TOPIC_ID, BrokerId, TopicId
from ottla.model.internal_topics import INTERNAL_TOPICS
from ottla.security.acls.kinds import Operation
from ottla.wire.apis.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def handle(node: Node, request: Request, body: MetadataRequest) -> MetadataResponse | None:
    """What is known of the topics asked for; unknown ones may be created on the way."""
    version = request.api_version
    if (refusal := _refusal(version, body)) is not None:
        return refusal
    rows: list[MetadataResponseTopic] = []
    missing: dict[str, None] = {}
    known = _asked(node.metadata, version, body, rows, missing)
    if request.access is not None:
        known, missing = _allowed(request.access, body, version, known, missing, rows)
    if missing:
        may_create = body.allow_auto_topic_creation and node.config.topics.auto_create_topics_enable
        rows += _missing_rows(node, request, missing, may_create)
    wants_operations = body.include_cluster_authorized_operations and 8 <= version <= 10
    answer = MetadataResponse(
        brokers=_brokers(node, request.listener),
        cluster_id=node.identity.cluster_id,
        controller_id=node.metadata.controller,
        cluster_authorized_operations=authorized_operations.of_cluster(request, is_asked=wants_operations),
    )

    def row_of(topic: TopicInfo) -> MetadataResponseTopic:
        return _topic_row(node.metadata, topic, request.listener, version)

    wants_operations = body.include_topic_authorized_operations and version >= 8
    if rows or wants_operations:
        answer.topics = [*rows, *map(row_of, known)]
        for row in answer.topics if wants_operations else ():
            if row.name is not None and row.error_code not in _NOT_TOLD:
                row.topic_authorized_operations = authorized_operations.of_topic(request, row.name)
        return answer
    request.reply_encoded(
        frame_with_topics(answer, version, request.correlation_id, request.listener, known, row_of)
    )
    return None


_NOT_TOLD = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _allowed(
    access: Access,
    body: MetadataRequest,
    version: int,
    known: Iterable[TopicInfo],
    missing: dict[str, None],
    rows: list[MetadataResponseTopic],
) -> tuple[Iterable[TopicInfo], dict[str, None]]:
    """Topics that the client may not describe are left out where it asks for all, and refused where it names
    them, whether or not they are there; by its id alone a topic's name is not told."""
    known = list(known)
    is_for_all = body.topics is None or (version == 0 and not body.topics)
    by_id = not is_for_all and any(topic.topic_id != ZERO_TOPIC_ID for topic in body.topics or ())
    allowed = access.topics([*(topic.name for topic in known), *missing], is_quiet=is_for_all)
    if not is_for_all:
        refused = {topic.name: topic for topic in known if topic.name not in allowed}
        for name in (*refused, *(name for name in missing if name not in allowed)):
            row = MetadataResponseTopic(
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                name=None if by_id else name,
                is_internal=not by_id and name in INTERNAL_TOPICS,
            )
            if by_id:
                row.topic_id = refused[name].topic_id
            rows.append(row)
    shown = [topic for topic in known if topic.name in allowed]
    return shown, {name: None for name in missing if name in allowed}


def _refusal(version: int, body: MetadataRequest) -> MetadataResponse | None:
    """Topic ids came with version 10 in the schema, but are served from 12 on; one of both must be there."""
    topics = body.topics or []
    has_ids = any(topic.topic_id != ZERO_TOPIC_ID for topic in topics)
    lacks_names = any(topic.name is None for topic in topics)
    if version < 12 and (has_ids or lacks_names):
        error = ErrorCode.INVALID_REQUEST
    elif lacks_names and not has_ids:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    else:
        return None
    rows = [
        MetadataResponseTopic(error_code=error, name=topic.name or "", topic_id=topic.topic_id)
        for topic in topics
    ]
    return MetadataResponse(topics=rows)


def _asked(
    image: MetadataImage,
    version: int,
    body: MetadataRequest,
    rows: list[MetadataResponseTopic],
    missing: dict[str, None],
) -> Iterable[TopicInfo]:
    """The known topics asked for; rows for unknown ids and the names of missing topics are put aside."""
    if body.topics is None or (version == 0 and not body.topics):
        return list(image.topics.values())
    ids = dict.fromkeys(TopicId(each.topic_id) for each in body.topics if each.topic_id != ZERO_TOPIC_ID)
    if ids:
        return _known_ids(image, ids, rows)
    known: dict[str, TopicInfo] = {}
    for name in (topic.name for topic in body.topics if topic.name is not None):
        if name in image.topics:
            known[name] = image.topics[name]
        else:
            missing[name] = None
    return known.values()


def _known_ids(
    image: MetadataImage, ids: Iterable[TopicId], rows: list[MetadataResponseTopic]
) -> Iterable[TopicInfo]:
    """Each once; where one names a topic by its id, those that are named otherwise are passed over."""
    known: list[TopicInfo] = []
    for topic_id in ids:
        info = image.topics.get(image.topic_names.get(topic_id, ""))
        if info is not None:
            known.append(info)
        else:
            unknown = ErrorCode.UNKNOWN_TOPIC_ID
            rows.append(MetadataResponseTopic(error_code=unknown, name=None, topic_id=topic_id))
    return known


def _missing_rows(
    node: Node, request: Request, names: Collection[str], may_create: bool
) -> list[MetadataResponseTopic]:
    access = request.access
    forbidden: set[str] = set()
    if may_create and access is not None and not access.cluster(is_quiet=True):
        forbidden = set(names) - access.topics(names, Operation.CREATE)
        names = [name for name in names if name not in forbidden]
    legal = [name for name in names if topic_names.why_illegal(name) is None]
    errors = dict.fromkeys(names, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if _is_untold(node):
        errors.update(dict.fromkeys(legal, ErrorCode.LEADER_NOT_AVAILABLE))
    elif may_create:
        errors.update(node.topic_creation.create_for_client(legal))
    else:
        errors.update(dict.fromkeys(legal, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    errors.update(dict.fromkeys(forbidden, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    return [
        MetadataResponseTopic(error_code=error, name=name, is_internal=name in INTERNAL_TOPICS)
        for name, error in errors.items()
    ]


def _is_untold(node: Node) -> bool:
    """Whether no controller has told this broker yet what topics there are.

    After the crash of a whole cluster that lasts until the dead controller's session ends. "Unknown topic",
    which Kafka says, makes clients drop what they have to send to topics that were there all the time; "not
    yet" lets them wait.
    """
    image = node.metadata
    return not image.has_heard_of_topics and (not image.brokers or bool(node.log_dirs.logs))


def _topic_row(image: MetadataImage, topic: TopicInfo, listener: str, version: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition_row(image, number, info, listener, version)
            for number, info in topic.partitions.items()
        ],
    )


def _partition_row(
    image: MetadataImage, number: int, info: PartitionInfo, listener: str, version: int
) -> MetadataResponsePartition:
    """A partition is shown with its leader only if the client can reach that one through its listener."""
    replicas, isr = info.replicas, info.isr
    if version == 0:
        replicas, isr = _reachable(image, replicas, listener), _reachable(image, isr, listener)
    if image.endpoint(info.leader, listener) is not None:
        leader = info.leader
        is_whole = len(replicas) == len(info.replicas) and len(isr) == len(info.isr)
        error = ErrorCode.NONE if is_whole else ErrorCode.REPLICA_NOT_AVAILABLE
    else:
        leader = NO_BROKER
        lacks_listener = image.is_alive(info.leader) and version >= 6
        error = ErrorCode.LISTENER_NOT_FOUND if lacks_listener else ErrorCode.LEADER_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=number,
        leader_id=leader,
        leader_epoch=info.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=info.offline_replicas,
    )


def _reachable(image: MetadataImage, brokers: tuple[BrokerId, ...], listener: str) -> tuple[BrokerId, ...]:
    return tuple(broker for broker in brokers if image.endpoint(broker, listener) is not None)


def _brokers(node: Node, listener: str) -> list[MetadataResponseBroker]:
    return [
        MetadataResponseBroker(node_id=live.broker, host=endpoint.host, port=endpoint.port, rack=live.rack)
        for live in brokers_shown(node)
        if (endpoint := live.endpoints.get(listener)) is not None
    ]


def brokers_shown(node: Node) -> Iterable[LiveBroker]:
    """Who is alive; as long as no controller has told, this broker alone, which it surely is.

    Kafka then names nobody, and librdkafka, which forgets the brokers that an answer does not name, may have
    nobody left to ask, and hang for good.
    """
    if node.metadata.brokers:
        return node.metadata.brokers.values()
    endpoints = {endpoint.listener: endpoint for endpoint in node.config.listeners.advertised_listeners}
    return [LiveBroker(node.broker_id, endpoints, node.config.broker_rack)]
