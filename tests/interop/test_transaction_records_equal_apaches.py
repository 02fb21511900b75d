"""After the same transactions, ``__transaction_state`` and ``__consumer_offsets`` hold the same at both.

Producer ids and moments are replaced by names; everything else is compared, the headers of the batches too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.test_transactions_equal_apaches import SETTINGS, coordinates
from ottla.records.batch import batches
from ottla.records.record import read_records
from ottla.wire.stored import TransactionLogValue, decode_stored, encode_stored
from support.groups.conversation import OTHER_TOPIC, TOPIC
from support.groups.two_clusters import TwoClusters, two_clusters
from support.running.waiting import wait_until
from support.transactions.conversation import TransactionTalk

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

EXPIRY = {
    "transactional.id.expiration.ms": 4_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
}


@pytest.fixture(scope="module")
def clusters(jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoClusters]:
    with two_clusters(tmp_path_factory.mktemp("two"), **SETTINGS, **EXPIRY) as running:
        for broker in running.both:
            wait_until(lambda at=broker.address: coordinates(at), "the broker coordinates transactions", 60)
        yield running


def live(talk: TransactionTalk) -> None:
    """Commits, aborts, a fence, a time-out; then nobody uses the id any more."""
    talk.init(timeout_ms=40_000)
    talk.add({TOPIC: (1, 0), OTHER_TOPIC: (0,)})
    talk.add({TOPIC: (2,)})
    talk.ended()
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 5, (TOPIC, 1): 6}, metadata="said")
    talk.ended()
    talk.add({TOPIC: (0,)})
    talk.ended(commit=False)
    talk.init(talk.me)
    talk.add({TOPIC: (0,)})
    talk.init(takes=False)
    talk.settle()
    talk.init(timeout_ms=500)
    talk.add_offsets()
    talk.commit_offsets({(TOPIC, 0): 7})
    talk.settle()

    def is_gone() -> bool:
        return bool(talk.describe().transaction_states[0].error_code == 105)

    wait_until(is_gone, "the id is expired", 60)


def stored(directory: Path) -> list[Any]:
    """Every batch: its header without times, ids and checksum, and its records."""
    found = []
    for segment in sorted(directory.glob("*.log")):
        data = memoryview(segment.read_bytes())
        for header in batches(data):
            rows = [
                (bytes(each.key or b""), None if each.value is None else bytes(each.value))
                for each in read_records(data, header)
            ]
            shown = (header.attributes, header.base_offset, header.producer_epoch, header.base_sequence)
            found.append((shown, header.producer_id >= 0, rows))
    return found


def transactions(directory: Path) -> list[Any]:
    return [(shown, [(key, _neutral(value)) for key, value in rows]) for shown, _, rows in stored(directory)]


def _neutral(value: bytes | None) -> Any:
    if value is None:
        return None
    state = decode_stored(TransactionLogValue, value)
    assert encode_stored(state, 0) == value, "a transaction's record is read without loss"
    return (
        state.producer_epoch,
        state.transaction_timeout_ms,
        state.transaction_status,
        None
        if state.transaction_partitions is None
        else sorted((each.topic, sorted(each.partition_ids)) for each in state.transaction_partitions),
        state.transaction_start_timestamp_ms > 0,
    )


def offsets(directory: Path) -> list[Any]:
    """Control batches and commits; the moment is at the end of a commit's value."""
    return [
        (shown, is_of_producer, [(key, value and value[:-8]) for key, value in rows])
        for shown, is_of_producer, rows in stored(directory)
    ]


def test_both_store_the_same(clusters: TwoClusters) -> None:
    for broker in clusters.both:
        talk = TransactionTalk(broker.address, "same")
        try:
            live(talk)
        finally:
            talk.close()

    theirs, ours = clusters.apache.log_dir, clusters.ottla.log_dir

    assert transactions(ours / "__transaction_state-0") == transactions(theirs / "__transaction_state-0")
    assert offsets(ours / "__consumer_offsets-0") == offsets(theirs / "__consumer_offsets-0")
