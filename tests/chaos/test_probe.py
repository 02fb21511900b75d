"""When the cluster counts as whole, by what brokers say of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.history import HistoryFile
from chaos.probe import Probe
from ottla.wire.apis.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

EVERYONE = (1, 2, 3)
PATIENCE_S = 60.0


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[Probe]:
    history = HistoryFile(tmp_path, "probe")
    brokers: list[Any] = [SimpleNamespace(number=number) for number in EVERYONE]
    yield Probe(brokers, "chaos", 1, history, PATIENCE_S)
    history.close()


def tell(probe: Probe, isr: tuple[int, ...] = EVERYONE) -> None:
    """Every broker answers."""
    row = MetadataResponsePartition(
        partition_index=0, leader_id=1, leader_epoch=4, replica_nodes=EVERYONE, isr_nodes=isr
    )
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=number) for number in EVERYONE],
        controller_id=2,
        topics=[MetadataResponseTopic(name="chaos", partitions=[row])],
    )
    for number in EVERYONE:
        probe._take(number, response)


def test_it_is_whole_when_all_agree_and_every_replica_is_in_sync(probe: Probe) -> None:
    tell(probe)

    assert probe.why_not_whole() is None
    assert probe.are_all_led()


def test_it_is_not_whole_while_a_replica_is_out_of_sync(probe: Probe) -> None:
    tell(probe, isr=(1, 3))

    assert "partition 0 is not whole" in str(probe.why_not_whole())


def test_answers_of_before_the_last_order_do_not_count(probe: Probe) -> None:
    """Replicas that were told to move a moment ago stand in them where they stood."""
    tell(probe)
    since = time.monotonic()

    assert "do not answer" in str(probe.why_not_whole(since))

    tell(probe)
    assert probe.why_not_whole(since) is None
