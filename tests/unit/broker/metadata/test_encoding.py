"""Kept bytes of topics put into a Metadata answer are the bytes of the whole answer, encoded anew."""

import pytest

from ottla.broker.metadata.encoding import frame_with_topics
from ottla.broker.metadata.image import TopicInfo
from ottla.model.ids import TopicId
from ottla.wire.apis.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.headers import frame_response


def row_of(topic: TopicInfo) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            MetadataResponsePartition(
                partition_index=number, leader_id=2, replica_nodes=(1, 2), isr_nodes=(2,)
            )
            for number in range(len(topic.name))
        ],
    )


@pytest.mark.parametrize("version", range(13))
@pytest.mark.parametrize("count", [0, 1, 2, 126, 127, 200])
def test_the_pieces_make_the_whole(version: int, count: int) -> None:
    topics = [TopicInfo(f"t{number}", TopicId(bytes([number % 256]) * 16)) for number in range(count)]
    answer = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=7, host="h", port=1)], cluster_id="c", controller_id=7
    )
    expected = MetadataResponse(
        brokers=answer.brokers, cluster_id="c", controller_id=7, topics=[row_of(topic) for topic in topics]
    )

    for _ in range(2):
        parts = frame_with_topics(answer, version, 99, "PLAINTEXT", topics, row_of)

        assert b"".join(parts) == b"".join(frame_response(expected, version, 99))
