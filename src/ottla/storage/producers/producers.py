"""What a log knows of its producers: the state in memory, snapshots on the disk, and the log's own batches.

A leader asks ``judge`` before it appends a batch; whoever appended one reports it with ``wrote``.
"""

from collections.abc import ItemsView

from ottla.model.errors import ErrorCode
from ottla.records.batch import BatchHeader
from ottla.records.control import EndMarker
from ottla.records.validate import Origin
from ottla.storage.disk.directory import PartitionHome, guarded
from ottla.storage.producers.repeated_batches import find_written
from ottla.storage.producers.replay import load_state
from ottla.storage.producers.snapshots import delete_snapshots, save_snapshot
from ottla.storage.producers.state import Producer, ProducerState, WrittenBatch
from ottla.storage.segment.segments import Segments
from ottla.storage.segment.txn_index import AbortedTransaction

_INVALID_TXN_STATE = int(ErrorCode.INVALID_TXN_STATE)


class Producers:
    """The producers of one log."""

    __slots__ = ("_segments", "home", "state")

    def __init__(self, home: PartitionHome, segments: Segments, state: ProducerState) -> None:
        self.home = home
        self._segments = segments
        self.state = state

    @classmethod
    def load(
        cls,
        home: PartitionHome,
        segments: Segments,
        log_start_offset: int,
        end_offset: int,
        *,
        was_clean: bool,
    ) -> "Producers":
        """The producers at ``end_offset``, from snapshots and batches."""
        state = load_state(home, segments, log_start_offset, end_offset, was_clean=was_clean)
        return cls(home, segments, state)

    @classmethod
    def start_anew(cls, home: PartitionHome, segments: Segments, offset: int) -> "Producers":
        """No producers: the log is empty and begins at ``offset``."""
        delete_snapshots(home, above=-1)
        return cls(home, segments, ProducerState(offset))

    def get(self, producer_id: int) -> Producer | None:
        return self.state.producers.get(producer_id)

    def items(self) -> ItemsView[int, Producer]:
        return self.state.producers.items()

    # -- append ------------------------------------------------------------------------------------

    def judge(
        self,
        header: BatchHeader,
        marker: EndMarker | None,
        origin: Origin,
        verification: int | None,
        must_be_verified: bool,
        term_start: int,
    ) -> WrittenBatch | int:
        """Whether a leader may append a batch: 0, the code of an error, or the earlier batch it repeats.

        ``term_start``: the first offset of the leader's own epoch.
        """
        state = self.state
        if marker is not None:
            return state.refuse_marker(header, marker)
        if origin == Origin.CLIENT:
            written = state.find_duplicate(header)
            if written is not None:
                return written
        if (
            must_be_verified
            and header.is_transactional
            and not state.has_open_transaction(header.producer_id)
            and not state.is_verified(header.producer_id, verification)
        ):
            return _INVALID_TXN_STATE
        code = state.refuse_batch(header, origin)
        if code and origin == Origin.CLIENT:
            return self._find_written(header, term_start) or code
        return code

    @guarded
    def _find_written(self, header: BatchHeader, term_start: int) -> WrittenBatch | None:
        below = self.state.forgotten_below(header, term_start)
        if below is None:
            return None
        return find_written(header, self.state.producers[header.producer_id], below, self._segments.all())

    def wrote(self, header: BatchHeader, marker: EndMarker | None) -> None:
        """Take note of a producer's batch that is in the log; ``marker``: what a control batch says."""
        state = self.state
        state.end_offset = header.end_offset
        if not header.is_control:
            state.wrote_batch(header)
        elif marker is not None and (aborted := state.wrote_marker(header, marker)) is not None:
            self._add_aborted(aborted)

    @guarded
    def _add_aborted(self, transaction: AbortedTransaction) -> None:
        self._segments.active.add_aborted(transaction)

    def start_verification(self, producer_id: int, epoch: int, sequence: int, now_ms: int = 0) -> int | None:
        """A token to be shown with the append (KIP-890); ``None`` if the transaction is open already."""
        return self.state.start_verification(producer_id, epoch, sequence, now_ms)

    # -- snapshots ---------------------------------------------------------------------------------

    def save_snapshot(self, offset: int) -> None:
        """Write the state for records below ``offset``."""
        save_snapshot(self.home, self.state, offset)
