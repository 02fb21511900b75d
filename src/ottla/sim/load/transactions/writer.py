"""Writes transactions over several partitions; some it aborts, some take too long."""

from collections.abc import Callable

from ottla.client.engine.tasks import Operation, sleep
from ottla.model.ids import TopicPartition
from ottla.sim.load.clients import Surroundings
from ottla.sim.load.transactions.program import Program
from ottla.sim.truth.transactions import Attempt, TransactionTruth


class Writer(Program):
    """A producer that has nothing to read."""

    def __init__(
        self,
        around: Surroundings,
        name: str,
        transactional_id: str,
        truth: TransactionTruth,
        ended: Callable[[Program], None],
        partitions: list[TopicPartition],
    ) -> None:
        super().__init__(around, name, transactional_id, truth, ended)
        self._partitions = partitions

    def _work(self) -> Operation[None]:
        """After it was asked to stop, one more transaction is committed."""
        was_stopped = self.is_stopped
        is_committed = yield from self._transaction(self._fill)
        self.is_idle = was_stopped and is_committed

    def _fill(self, attempt: Attempt) -> Operation[bool]:
        for _ in range(self.world.between(1, 3)):
            for _ in range(self.world.between(1, 3)):
                self._send(attempt, self.world.chance.choice(self._partitions))
            if self.world.happens(0.5):
                yield from sleep(self.world.between(0, 400))
        if self.is_stopped:
            return True
        if self.world.happens(0.05):
            yield from sleep(self.timeout_ms + self.world.between(0, 3_000))
        return self.world.happens(0.8)
