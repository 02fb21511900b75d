"""Runs the programs with transactional ids: those that end are started again, some of them too early."""

from collections.abc import Callable
from itertools import count

from ottla.model.ids import TopicPartition
from ottla.sim.load.clients import Surroundings
from ottla.sim.load.own_workload import STRATEGIES
from ottla.sim.load.transactions.copier import Copier
from ottla.sim.load.transactions.program import Program
from ottla.sim.load.transactions.reader import CommittedReader
from ottla.sim.load.transactions.writer import Writer
from ottla.sim.truth.transactions import TransactionTruth
from ottla.sim.world import SECOND

SUPERVISOR_US = SECOND
"""How long after the last process of a transactional id ended the next one starts."""


class TransactionCrew:
    """All processes; of one transactional id there may be several, all but the newest of them zombies."""

    def __init__(self, around: Surroundings, truth: TransactionTruth) -> None:
        self.programs: list[Program] = []
        """The living processes, the newest last."""
        self.readers: list[CommittedReader] = []
        self._around = around
        self._truth = truth
        self._numbers = count()
        self._make: dict[str, Callable[[str], Program]] = {}
        self._stopped: type[Program] | tuple[type[Program], ...] = ()

    def begin(
        self, writers: int, copiers: int, source: list[TopicPartition], target: list[TopicPartition]
    ) -> None:
        """Start so many of each; the copiers bring what stands in ``source`` to ``target``."""
        around, truth, topics = self._around, self._truth, (source[0].topic, target[0].topic)
        strategies = around.world.chance.choice(STRATEGIES)

        def writer(transactional_id: str) -> Callable[[str], Program]:
            return lambda name: Writer(around, name, transactional_id, truth, self._ended, source)

        def copier(transactional_id: str) -> Callable[[str], Program]:
            return lambda name: Copier(around, name, transactional_id, truth, self._ended, topics, strategies)

        self._make = {f"writer-{number}": writer(f"writer-{number}") for number in range(writers)}
        self._make |= {f"copier-{number}": copier(f"copier-{number}") for number in range(copiers)}
        for transactional_id in self._make:
            self.start(transactional_id)
        reader = CommittedReader(around, [*source, *target], truth)
        self.readers.append(reader)
        reader.start()

    def start(self, transactional_id: str) -> None:
        """One more process of this id."""
        program = self._make[transactional_id](f"{transactional_id}-{next(self._numbers)}")
        program.is_stopped = isinstance(program, self._stopped)
        self.programs.append(program)
        program.start()

    def kill(self, program: Program, away_us: int) -> None:
        """A process dies, and another comes for it after a while."""
        self.programs.remove(program)
        program.die()
        self._around.world.after(away_us, lambda: self._replace(program.transactional_id))

    def stop(self, kind: type[Program] | tuple[type[Program], ...]) -> None:
        """All of this kind end their last transaction, and so do those that are started from now on."""
        self._stopped = kind
        for program in self.programs:
            program.is_stopped = isinstance(program, kind)

    def thaw(self) -> None:
        """Nobody stands still any more."""
        for program in list(self.programs):
            program.thaw()

    def are_idle(self, kind: type[Program]) -> bool:
        """Whether the newest process of every id of this kind has ended its last transaction."""
        newest = {program.transactional_id: program for program in self.programs}
        return newest.keys() == self._make.keys() and all(
            program.is_idle for program in newest.values() if isinstance(program, kind)
        )

    def _ended(self, program: Program) -> None:
        """It was told that another has its place, or that it took too long."""
        if program in self.programs:
            self.kill(program, SUPERVISOR_US)

    def _replace(self, transactional_id: str) -> None:
        if all(each.transactional_id != transactional_id for each in self.programs):
            self.start(transactional_id)
