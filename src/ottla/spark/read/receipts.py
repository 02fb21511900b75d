"""What the cluster wrote down of an election that cut a log, and the sentence that tells of it."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.client.config import ClientConfig
from ottla.client.engine.metadata import PartitionInfo
from ottla.client.errors import ClientError
from ottla.client.fetching.epochs import EpochEnd
from ottla.client.fetching.offsets import list_offsets
from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import DECISIONS_TOPIC
from ottla.model.timestamps import EARLIEST, LATEST

RECEIPTS = ("loss receipt", "unclean start")
"""The controller's word, and the new leader's own, which comes under an Apache controller, too."""
FindReceipt: TypeAlias = Callable[[ClientConfig, TopicPartition, int], dict[str, Any] | None]
_LOG = TopicPartition(DECISIONS_TOPIC, 0)
_READ_MS = 5_000


def find_receipt(cluster: ClientConfig, partition: TopicPartition, epoch: int) -> dict[str, Any] | None:
    """The first receipt of an unclean election after an epoch; none on a cluster that writes none.

    It is for the message alone: a cluster that does not say so now changes nothing about what is lost.
    """
    try:
        with Client(cluster) as client:
            found = receipts_of(client, {partition})
    except ClientError:
        return None
    return next((receipt for receipt in found if receipt["leader_epoch"] > epoch), None)


def receipts_of(client: Client, partitions: set[TopicPartition]) -> list[dict[str, Any]]:
    """The receipts of some partitions, oldest first, each with the ``offset`` at which it is written."""
    wanted = {str(partition) for partition in partitions}
    return [row for row in decisions_of(client, wanted) if row.get("kind") in RECEIPTS]


def decisions_of(client: Client, partitions: set[str] | None = None) -> list[dict[str, Any]]:
    """All that is recorded of some partitions, or of all, oldest first, each with its ``offset``."""
    (topic,) = client.run(describe_topics, [DECISIONS_TOPIC], timeout_ms=_READ_MS).topics
    if topic.error_code:
        return []
    first = client.run(list_offsets, {_LOG: EARLIEST}, timeout_ms=_READ_MS)[_LOG].offset
    end = client.run(list_offsets, {_LOG: LATEST}, timeout_ms=_READ_MS)[_LOG].offset
    consumer = client.consumer(max_poll_records=5_000)
    consumer.assign({_LOG: first})
    found: list[dict[str, Any]] = []
    while (consumer.position(_LOG) or first) < end:
        records = consumer.poll(_READ_MS).get(_LOG)
        if not records:
            break
        for record in records:
            if record.value is not None and (
                partitions is None or (record.key or b"").decode() in partitions
            ):
                found.append({**json.loads(record.value), "offset": record.offset})
    return found


def cut_told(
    partition: TopicPartition,
    read: int,
    epoch: int,
    end: EpochEnd,
    leader: PartitionInfo | None,
    receipt: dict[str, Any] | None,
) -> str:
    """The range, the election as far as it is known, and where the cluster's own word stands."""
    start = max(end.end_offset, 0)
    what = (
        f"offsets [{start}, {read}) of {partition} were read in leader epoch {epoch} and are gone: "
        f"the log was cut at {start}"
    )
    if receipt is not None:
        isr = receipt.get("old_isr")
        among = f" while the in-sync replicas {isr} were offline" if isr else ""
        return (
            f"{what} when broker {receipt['new_leader']} was elected uncleanly in epoch "
            f"{receipt['leader_epoch']}{among} (receipt: {DECISIONS_TOPIC} offset {receipt['offset']})"
        )
    if leader is None:
        return f"{what}, as an unclean election does"
    return f"{what}, as an unclean election does; broker {leader.leader} leads in epoch {leader.leader_epoch}"
