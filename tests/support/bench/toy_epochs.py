"""A log's leader epochs as a plain list."""

from __future__ import annotations


class ToyEpochs:
    """Pairs of epoch and start offset, with Kafka's lookup rule."""

    def __init__(self, *entries: tuple[int, int]) -> None:
        self.entries = list(entries)

    @property
    def latest_epoch(self) -> int:
        return self.entries[-1][0] if self.entries else -1

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        if epoch < 0 or not self.entries or epoch > self.entries[-1][0]:
            return (-1, -1)
        if epoch == self.entries[-1][0]:
            return (epoch, log_end_offset)
        later = next(start for known, start in self.entries if known > epoch)
        earlier = [known for known, _ in self.entries if known <= epoch]
        return (earlier[-1] if earlier else epoch, later)
