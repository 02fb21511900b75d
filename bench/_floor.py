"""The client's own share of a latency: a responder that says yes to every Produce and writes nothing.

A process of its own, on the same event loop as a broker: ``python bench/_floor.py PORT TOPIC``. What it would
answer, as a table for the same in C (``bench/_floor.c``): ``answer_table``.
"""

import asyncio
import struct
import sys
from typing import cast

import uvloop

from ottla.wire.apis.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.apis.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.apis.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.wire.framing import ReceiveBuffer
from ottla.wire.headers import frame_response
from ottla.wire.keys import ApiKey

SPOKEN = (
    (ApiKey.PRODUCE, 0, 10),
    (ApiKey.FETCH, 4, 16),
    (ApiKey.METADATA, 0, 12),
    (ApiKey.API_VERSIONS, 0, 3),
)


class Yes(asyncio.BufferedProtocol):
    """One client's connection."""

    def __init__(self, port: int, topic: str) -> None:
        partition = MetadataResponsePartition(partition_index=0, leader_id=0, leader_epoch=0)
        self._receive = ReceiveBuffer()
        self._answers = {
            ApiKey.PRODUCE: ProduceResponse(
                [TopicProduceResponse(topic, [PartitionProduceResponse(0, 0, 5, -1, 0)])]
            ),
            ApiKey.API_VERSIONS: ApiVersionsResponse(
                api_keys=[
                    ApiVersion(api_key=key, min_version=first, max_version=last)
                    for key, first, last in SPOKEN
                ]
            ),
            ApiKey.METADATA: MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=0, host="127.0.0.1", port=port)],
                controller_id=0,
                topics=[MetadataResponseTopic(name=topic, topic_id=bytes(16), partitions=[partition])],
            ),
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receive.get_buffer()

    def buffer_updated(self, count: int) -> None:
        self._receive.received(count)
        while (frame := self._receive.next_frame()) is not None:
            api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
            self._transport.writelines(
                frame_response(self._answers[ApiKey(api_key)], version, correlation_id)
            )


def answer_table(port: int, topic: str) -> bytes:
    """Every answer in every version: API, version, length and the frame, with 0 for the asker's number."""
    answers = Yes(port, topic)._answers
    table = bytearray()
    for key, first, last in SPOKEN:
        for version in range(first, last + 1) if key in answers else ():
            frame = b"".join(frame_response(answers[key], version, 0))
            table += struct.pack(">hhi", key, version, len(frame)) + frame
    return bytes(table)


async def main(port: int, topic: str) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Yes(port, topic), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2]))
