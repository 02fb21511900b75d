"""Transactions during a compaction: which batches were aborted, which markers have no data left."""

from heapq import heappop, heappush

from ottla.records.batch import BatchHeader
from ottla.records.control import written_end_marker
from ottla.storage.segment.txn_index import AbortedTransaction


class TransactionTracker:
    """Follows the batches of a log in order of offset."""

    __slots__ = ("_aborted_ahead", "_committed", "_ongoing_aborted", "_seen_data_of", "kept")

    def __init__(self) -> None:
        self._aborted_ahead: list[tuple[int, AbortedTransaction]] = []
        self._ongoing_aborted: dict[int, AbortedTransaction] = {}
        self._seen_data_of: set[int] = set()
        self._committed: set[int] = set()
        self.kept: list[AbortedTransaction] = []
        """Aborted transactions that still have data, for the index of the cleaned segment."""

    def add_aborted(self, entries: list[AbortedTransaction]) -> None:
        """Add aborted transactions before their batches come."""
        for entry in entries:
            heappush(self._aborted_ahead, (entry.first_offset, entry))

    def _come_to(self, offset: int) -> None:
        while self._aborted_ahead and self._aborted_ahead[0][0] <= offset:
            entry = heappop(self._aborted_ahead)[1]
            self._ongoing_aborted.setdefault(entry.producer_id, entry)

    def data(self, header: BatchHeader) -> bool:
        """Follow a data batch: True if it was aborted and may be removed."""
        self._come_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._ongoing_aborted:
            self._seen_data_of.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def marker(self, header: BatchHeader, content: bytes) -> bool:
        """Follow a control batch: True if its transaction has no data left and it may be removed in time."""
        self._come_to(header.last_offset)
        if header.record_count == 0:
            return True
        marker = written_end_marker(content, header._replace(position=0))
        if marker is None:
            return False
        producer_id = header.producer_id
        if marker.is_commit:
            had_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_data
        entry = self._ongoing_aborted.pop(producer_id, None)
        had_data = producer_id in self._seen_data_of
        self._seen_data_of.discard(producer_id)
        if entry is not None and had_data:
            self.kept.append(entry)
        return not (entry is not None and had_data)
