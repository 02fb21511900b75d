"""The plain answer to a Fetch is, to the byte, what the codec writes."""

import pytest

from ottla.broker.clients.fetch_answers import PLAIN_SINCE, PlainAnswer
from ottla.model.ids import TopicId
from ottla.wire.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.wire.headers import frame_response

NEWEST = FetchResponse.spec.versions[1]


@pytest.mark.parametrize("version", range(PLAIN_SINCE, NEWEST + 1))
@pytest.mark.parametrize("size", [1, 126, 127, 20_000])
def test_it_is_what_the_codec_writes(version: int, size: int) -> None:
    topic, topic_id, records = "orders", TopicId(bytes(range(16))), bytes(range(1, 2)) * size
    pattern = PlainAnswer(version, topic, topic_id)
    for number in (0, 2**31 - 1):
        row = PartitionData(
            partition_index=number,
            high_watermark=number * 7,
            last_stable_offset=number * 5,
            log_start_offset=number * 3,
            aborted_transactions=None,
            records=records,
        )
        response = FetchResponse(
            session_id=number, responses=[FetchableTopicResponse(topic, topic_id, [row])]
        )
        stamped = pattern.encoded(number, number, number, number * 7, number * 5, number * 3, records)
        assert b"".join(stamped) == b"".join(frame_response(response, version, number))
