"""A transaction that waits for somebody else's decision (KIP-939), named so that the name can be kept."""

from typing import NamedTuple, Self


class Prepared(NamedTuple):
    """The producer id and epoch that a prepared transaction keeps, whoever resumes it; text ``id:epoch``."""

    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.epoch}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The name from its text; raises ``ValueError`` if it is none."""
        producer_id, separator, epoch = text.partition(":")
        if not separator or not producer_id.isdecimal() or not epoch.isdecimal():
            raise ValueError(f"{text!r} names no prepared transaction: it is written producer id:epoch")
        return cls(int(producer_id), int(epoch))
