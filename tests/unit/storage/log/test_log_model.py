"""A log against a list: random operations, then every question is answered alike by both."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.records.batch import read_header
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.record import Record
from ottla.storage.cleanup.retention import apply_retention
from ottla.storage.log.log import Log
from ottla.storage.log.outcomes import Appended
from support.logs.builders import a_log, all_bytes, reopened, small_segments
from support.logs.truth import check_log

pytestmark = pytest.mark.slow


class LogAndList(RuleBasedStateMachine):
    """The list holds (base offset, end offset, bytes) of every batch that should be in the log."""

    @initialize(segment_bytes=st.sampled_from([300, 900, 100_000]), interval=st.sampled_from([0, 200, 4096]))
    def begin(self, segment_bytes: int, interval: int) -> None:
        self.log: Log = a_log(small_segments(segment_bytes=segment_bytes, index_interval_bytes=interval))
        self.model: list[tuple[int, int, bytes]] = []
        self.epoch = 0
        self.now_ms = 1_000

    @rule(sizes=st.lists(st.integers(0, 120), min_size=1, max_size=3), codec=st.sampled_from(Codec))
    def append(self, sizes: list[int], codec: Codec) -> None:
        self.now_ms += 7
        batch = build_batch([Record(b"k", bytes(size), timestamp=self.now_ms) for size in sizes], codec=codec)
        if len(batch) > self.log.config.segment_bytes:
            return
        outcome = self.log.append_as_leader(
            batch, read_header(batch), leader_epoch=self.epoch, now_ms=self.now_ms
        )
        assert isinstance(outcome, Appended)
        self.model.append((outcome.base_offset, outcome.last_offset + 1, bytes(batch)))

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.model) - 1))
        self.log.truncate_to(self.model[at][0])
        del self.model[at:]

    @rule(data=st.data())
    def raise_watermark(self, data: st.DataObject) -> None:
        self.log.set_high_watermark(data.draw(st.integers(self.log.high_watermark, self.log.end_offset)))

    @precondition(lambda self: self.log.high_watermark > self.log.log_start_offset)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        before = self.log.high_watermark
        self.log.raise_log_start_offset(data.draw(st.integers(self.log.log_start_offset, before)))
        apply_retention(self.log, 0)
        assert self.log.high_watermark == before
        start = self.log.log_start_offset
        self.model = [each for each in self.model if each[1] > start]

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule(was_clean=st.booleans())
    def restart(self, was_clean: bool) -> None:
        if was_clean:
            self.log.close()
        start = self.log.log_start_offset
        self.log = reopened(self.log, was_clean=was_clean)
        self.log.raise_log_start_offset(start)

    @invariant()
    def log_holds_what_the_list_holds(self) -> None:
        if hasattr(self, "log"):
            assert all_bytes(self.log) == b"".join(content for _, _, content in self.model)

    @invariant()
    def log_is_sound(self) -> None:
        if hasattr(self, "log"):
            check_log(self.log)

    @invariant()
    def every_offset_is_found_in_its_batch(self) -> None:
        for base, end, content in self.model[-3:] if hasattr(self, "model") else ():
            for offset in range(max(base, self.log.log_start_offset), end):
                found = self.log.read(offset, 1, self.log.end_offset)
                assert found is not None
                assert found.read() == content


LogAndList.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
test_log_and_list_agree = LogAndList.TestCase
