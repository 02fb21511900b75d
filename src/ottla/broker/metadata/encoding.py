"""Large Metadata answers without encoding every topic again: each topic's bytes are kept until it changes."""

from collections.abc import Callable, Iterable

from ottla.broker.metadata.encoded_lists import frame_with_items, only_item
from ottla.broker.metadata.image import TopicInfo
from ottla.broker.outputs import Buffer
from ottla.wire.apis.metadata import MetadataResponse, MetadataResponseTopic

FIRST_FLEXIBLE = 9


def frame_with_topics(
    answer: MetadataResponse,
    version: int,
    correlation_id: int,
    listener: str,
    topics: Iterable[TopicInfo],
    row_of: Callable[[TopicInfo], MetadataResponseTopic],
) -> list[Buffer]:
    """The whole frame of ``answer``, which holds no topics yet, with these put in."""
    blobs = [_blob(topic, version, listener, row_of) for topic in topics]
    return frame_with_items(answer, version, correlation_id, blobs, _tail_size(version))


def _blob(
    topic: TopicInfo, version: int, listener: str, row_of: Callable[[TopicInfo], MetadataResponseTopic]
) -> bytes:
    blob = topic.encoded.get((listener, version))
    if blob is None:
        alone = MetadataResponse(topics=[row_of(topic)])
        blob = only_item(MetadataResponse(), alone, version, _tail_size(version))
        topic.encoded[listener, version] = blob
    return blob


def _tail_size(version: int) -> int:
    """What follows the topics: the cluster's operations in versions 8 to 10, tags in flexible ones."""
    return (4 if 8 <= version <= 10 else 0) + (1 if version >= FIRST_FLEXIBLE else 0)
