"""The codec beside kio 0.6.2: microseconds per message, both ways, in one run.

Bars: encode at least five times as fast as kio, whose writer is Python; decode within three times the time
of kio, whose reader is compiled. Fetch responses are encoded to parts, as they go to the socket.

    python bench/codec.py [--seconds 0.5] [--no-history]
"""

import argparse
import io
import time
from collections.abc import Callable
from dataclasses import dataclass

from bars import CODEC
from history import record
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from ottla.wire.apis.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.wire.apis.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ottla.wire.apis.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.codec import decode, encode, encode_bytes
from ottla.wire.fields import Message, Request

ROUNDS = 50
BATCH = bytes(16_384)


@dataclass(frozen=True, slots=True)
class Case:
    """One message in one version."""

    name: str
    version: int
    message: Message


def cases() -> list[Case]:
    """The messages of the hot path, and the two large ones of the control plane."""
    return [
        Case("Produce request, 16 KiB", 9, _produce_request()),
        Case("Produce response", 9, _produce_response()),
        Case("Fetch request, 50 partitions", 12, _fetch_request()),
        Case("Fetch response, 50 empty", 12, _fetch_response(b"")),
        Case("Fetch response, 50 x 16 KiB", 12, _fetch_response(BATCH)),
        Case("Metadata, 1,000 partitions", 12, _metadata()),
        Case("LeaderAndIsr, 1,000 partitions", 7, _leader_and_isr()),
    ]


def _produce_request() -> ProduceRequest:
    partition = PartitionProduceData(index=3, records=BATCH)
    topic = TopicProduceData(name="orders", partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def _produce_response() -> ProduceResponse:
    partition = PartitionProduceResponse(index=3, base_offset=123_456_789, log_start_offset=0)
    return ProduceResponse(responses=[TopicProduceResponse(name="orders", partition_responses=[partition])])


def _fetch_request() -> FetchRequest:
    partitions = [
        FetchPartition(
            partition=n,
            current_leader_epoch=4,
            fetch_offset=1_000_000 + n,
            log_start_offset=0,
            partition_max_bytes=1 << 20,
        )
        for n in range(50)
    ]
    topics = [FetchTopic(topic="orders", partitions=partitions)]
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=topics, rack_id="")


def _fetch_response(records: bytes) -> FetchResponse:
    partitions = [
        PartitionData(
            partition_index=n,
            high_watermark=1_000_100,
            last_stable_offset=1_000_100,
            log_start_offset=0,
            records=records,
        )
        for n in range(50)
    ]
    return FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=partitions)])


def _replicas(n: int) -> tuple[int, ...]:
    return (n % 3 + 1, (n + 1) % 3 + 1, (n + 2) % 3 + 1)


def _metadata() -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=n, host=f"broker-{n}.example", port=9092) for n in (1, 2, 3)]
    topics = [
        MetadataResponseTopic(
            name=f"topic-{t}",
            topic_id=t.to_bytes(16, "big"),
            partitions=[
                MetadataResponsePartition(
                    partition_index=p,
                    leader_id=p % 3 + 1,
                    leader_epoch=7,
                    replica_nodes=_replicas(p),
                    isr_nodes=_replicas(p),
                )
                for p in range(100)
            ],
        )
        for t in range(1, 11)
    ]
    return MetadataResponse(brokers=brokers, cluster_id="cluster", controller_id=1, topics=topics)


def _leader_and_isr() -> LeaderAndIsrRequest:
    topics = [
        LeaderAndIsrTopicState(
            topic_name=f"topic-{t}",
            topic_id=t.to_bytes(16, "big"),
            partition_states=[
                LeaderAndIsrPartitionState(
                    partition_index=p,
                    controller_epoch=3,
                    leader=p % 3 + 1,
                    leader_epoch=7,
                    isr=_replicas(p),
                    partition_epoch=9,
                    replicas=_replicas(p),
                )
                for p in range(100)
            ],
        )
        for t in range(1, 11)
    ]
    leaders = [LeaderAndIsrLiveLeader(broker_id=n, host_name=f"broker-{n}", port=9092) for n in (1, 2, 3)]
    return LeaderAndIsrRequest(
        controller_id=1, controller_epoch=3, broker_epoch=77, topic_states=topics, live_leaders=leaders
    )


def microseconds(calls: list[Callable[[], object]], seconds: float) -> list[float]:
    """The least CPU time of each call, over many short rounds in turn: what disturbs one disturbs all."""
    loops = []
    for call in calls:
        call()
        start = time.process_time_ns()
        call()
        once = max(1, time.process_time_ns() - start)
        loops.append(max(1, int(seconds * 1e9 / ROUNDS / once)))
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for n, call in enumerate(calls):
            start = time.process_time_ns()
            for _ in range(loops[n]):
                call()
            best[n] = min(best[n], (time.process_time_ns() - start) / loops[n])
    return [nanoseconds / 1000 for nanoseconds in best]


def measure(case: Case, seconds: float) -> tuple[float, float, float, float]:
    """Our encode and decode, kio's encode and decode."""
    cls, version = type(case.message), case.version
    encoded = encode_bytes(case.message, version)
    load = load_request_schema if isinstance(case.message, Request) else load_response_schema
    assert cls.spec.api_key is not None
    kio_type = load(int(cls.spec.api_key), version)
    read, write = entity_reader(kio_type), entity_writer(kio_type)
    kio_message = read(encoded, 0)[0]
    out = io.BytesIO()
    write(out, kio_message)
    assert out.getvalue() == encoded, "both codecs must do the same work"
    ours_out, ours_in, kio_out, kio_in = microseconds(
        [
            lambda: encode(case.message, version),
            lambda: decode(cls, version, encoded),
            lambda: write(io.BytesIO(), kio_message),
            lambda: read(encoded, 0),
        ],
        seconds,
    )
    return ours_out, ours_in, kio_out, kio_in


def main() -> int:
    """Print the table and keep it; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="CPU time for each number")
    parser.add_argument("--no-history", action="store_true", help="do not append to bench/history.jsonl")
    options = parser.parse_args()
    missed = 0
    numbers: dict[str, dict[str, float]] = {}
    print(f"{'':36}{'encode':>9}{'kio':>9}{'faster':>8}{'decode':>9}{'kio':>9}{'slower':>8}   (µs)")
    for case in cases():
        ours_out, ours_in, kio_out, kio_in = measure(case, options.seconds)
        faster, slower = kio_out / ours_out, ours_in / kio_in
        is_missed = not (
            CODEC["encode_times_faster"].is_met(faster) and CODEC["decode_times_slower"].is_met(slower)
        )
        missed += is_missed
        row = f"{ours_out:9.1f}{kio_out:9.1f}{faster:7.1f}x{ours_in:9.1f}{kio_in:9.1f}{slower:7.1f}x"
        name = f"{case.name} v{case.version}"
        print(f"{name:36}{row}{'   MISSED' if is_missed else ''}")
        numbers[name] = {
            "encode_us": round(ours_out, 2),
            "decode_us": round(ours_in, 2),
            "encode_times_faster": round(faster, 2),
            "decode_times_slower": round(slower, 2),
        }
    if not options.no_history:
        record("codec", numbers)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
