"""Reads what was committed, and nothing else."""

from ottla.client.config import ConsumerConfig
from ottla.client.errors import ClientError, LogTruncated, OffsetOutOfRange
from ottla.client.fetching.fetcher import FetchCore
from ottla.model.ids import TopicPartition
from ottla.sim.load.clients import Surroundings
from ottla.sim.load.own_client import OwnClient
from ottla.sim.truth.history import Violation
from ottla.sim.truth.transactions import TransactionTruth
from ottla.sim.world import MILLISECOND


class CommittedReader(OwnClient):
    """Never goes back, and never stops."""

    def __init__(
        self, around: Surroundings, partitions: list[TopicPartition], truth: TransactionTruth
    ) -> None:
        super().__init__(around, "committed-reader")
        self.truth = truth
        self.logs: dict[TopicPartition, list[tuple[int, bytes]]] = {each: [] for each in partitions}
        config = ConsumerConfig(
            auto_offset_reset="none",
            max_partition_fetch_bytes=self.world.chance.choice([300, 1 << 20]),
            isolation_level="read_committed",
        )
        self.core = FetchCore(self.engine, config)

    def start(self) -> None:
        self.enter(lambda: self.core.assign(dict.fromkeys(self.logs, 0)))
        self._read_on()

    def _read_on(self) -> None:
        self.enter(self._take)
        self.world.after(self.world.between(10, 200) * MILLISECOND, self._read_on)

    def _take(self) -> None:
        try:
            taken = self.core.take(self.world.chance.choice([1, 7, 500]))
        except (OffsetOutOfRange, LogTruncated) as error:
            if error.partition not in self.truth.history.unclean:
                raise Violation(f"{self.host}: {error}") from error
            self.core.seek(error.partition, 0)
            self.logs[error.partition].clear()
            return
        except ClientError as error:
            raise Violation(f"{self.host} cannot read on: {type(error).__name__}: {error}") from error
        for partition, records in taken.items():
            for record in records:
                value = record.value or b""
                self.truth.was_read(partition, record.offset, value, self.host)
                self.logs[partition].append((record.offset, value))
            self.world.note(b"%d" % records[-1].offset)
