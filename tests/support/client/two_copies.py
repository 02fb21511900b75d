"""One partition on two brokers in memory, each of which serves its own copy of it."""

from __future__ import annotations

from typing import Any

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from support.client.fake_cluster import FakeCluster, FakeLog

ORDERS = TopicPartition("orders", 0)
LEADER, FOLLOWER = 1, 2


class TwoCopies(FakeCluster):
    """Both brokers serve consumers. Every batch has one record; what is not there yet is not waited for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.topic("orders", leaders=[LEADER])
        self.copies = {LEADER: self.logs[ORDERS], FOLLOWER: FakeLog(FOLLOWER)}
        self.racks: dict[str, int] = {}
        """Which replica the leader names to readers of a rack."""

    def write(self, count: int, *brokers: int) -> None:
        for _ in range(count):
            for broker in brokers:
                self.copies[broker].append(bytes(build_batch([Record(b"k", b"v", timestamp=1_234)])))

    def _fetch(self, broker: int, message: FetchRequest) -> FetchResponse:
        (topic,) = message.topics
        (wanted,) = topic.partitions
        log = self.copies[broker]
        data = PartitionData(high_watermark=log.end_offset, log_start_offset=log.start_offset)
        if topic.topic_id not in self.topic_ids.values():
            data = PartitionData(error_code=ErrorCode.UNKNOWN_TOPIC_ID)
        elif not log.start_offset <= wanted.fetch_offset <= log.end_offset:
            data = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        elif broker == LEADER and message.rack_id in self.racks:
            data.preferred_read_replica = self.racks[message.rack_id]
        else:
            data.records = b"".join(log.data[wanted.fetch_offset :])
        row = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[data])
        return FetchResponse(responses=[row])

    def _list_offsets(self, broker: int, message: ListOffsetsRequest) -> ListOffsetsResponse:
        response = super()._list_offsets(broker, message)
        if message.replica_id == -2:
            row = response.topics[0].partitions[0]
            row.error_code, row.offset = ErrorCode.NONE, self.copies[broker].start_offset
        return response
