"""The end of a run for transactions: all of them end everywhere, and the logs hold what was promised."""

from collections.abc import Callable

from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.sim.cluster import Cluster
from ottla.sim.load.transactions.copier import Copier
from ottla.sim.load.transactions.writer import Writer
from ottla.sim.plan import COPIES, WRITTEN
from ottla.sim.truth.contents import Contents, Mark, contents_of, records_of
from ottla.sim.truth.decisions import check_marks, decisions_in
from ottla.sim.truth.history import Violation
from ottla.sim.truth.transactions import check_copies
from ottla.sim.world import SECOND
from ottla.storage.log.log import Log


class TransactionsEnding:
    """Judges the programs with transactional ids, when everything has healed."""

    def __init__(self, cluster: Cluster, leader_log: Callable[[TopicPartition], Log | None]) -> None:
        self._cluster = cluster
        self._crew = cluster.transactions
        self._truth = cluster.transaction_truth
        self._leader_log = leader_log
        self._ends: dict[TopicPartition, int] = {}
        self._contents: dict[TopicPartition, Contents] = {}

    @property
    def _is_judged(self) -> bool:
        return bool(self._cluster.shape.writers) and not self._truth.is_void

    def come_to_rest(self) -> None:
        """Every transactional id can commit once more, all is copied, and no transaction stays open."""
        if not self._is_judged:
            return
        await_ = self._cluster.await_
        self._crew.stop(Writer)
        await_(lambda: self._crew.are_idle(Writer), 90 * SECOND, "every transactional id can commit")
        if self._cluster.shape.copiers:
            await_(self._is_copied, 90 * SECOND, "everything that was committed is copied")
        self._crew.stop((Writer, Copier))
        await_(lambda: self._crew.are_idle(Copier), 60 * SECOND, "copiers end their last transaction")
        await_(self._is_stable, 60 * SECOND, "every partition is stable up to its end")
        await_(self._is_read, 30 * SECOND, "readers of committed records have read everything")

    def check(self) -> None:
        """The logs hold all of each transaction, or nothing."""
        if not self._is_judged:
            return
        contents = {each: self._read(each) for each in self._written()}
        self._truth.check({each: of_log.records for each, of_log in contents.items()})
        for reader in self._crew.readers:
            for partition, seen in reader.logs.items():
                wanted = [
                    (each.offset, each.value) for each in contents[partition].records if each.is_committed
                ]
                if seen != wanted and partition not in self._unclean:
                    raise Violation(
                        f"{reader.host} read something else than what is committed in {partition}"
                    )
        for partition in self._sources() if self._cluster.shape.copiers else []:
            target = TopicPartition(COPIES, partition.partition)
            check_copies(contents[partition].records, contents[target].records, target)
        self._check_decisions({each: c.marks for each, c in contents.items() if each not in self._unclean})

    def _check_decisions(self, marks: dict[TopicPartition, list[Mark]]) -> None:
        """Where a clock that jumped had a log of decisions compacted, not all of them are known."""
        decisions = []
        for partition in sorted(self._cluster.assignments()):
            if partition.topic == TRANSACTIONS_TOPIC:
                log = self._leader_log(partition)
                records = records_of(log) if log is not None else []
                if [each.offset for each in records] != list(range(len(records))):
                    return
                decisions += decisions_in(records)
        check_marks(decisions, marks)

    # -- conditions --------------------------------------------------------------------------

    @property
    def _unclean(self) -> set[TopicPartition]:
        return self._cluster.history.unclean

    def _written(self) -> list[TopicPartition]:
        return [each for each in self._cluster.partitions() if each.topic in (WRITTEN, COPIES)]

    def _sources(self) -> list[TopicPartition]:
        """Whose records can be compared with their copies."""
        return [
            each
            for each in self._written()
            if each.topic == WRITTEN
            and each not in self._unclean
            and TopicPartition(COPIES, each.partition) not in self._unclean
        ]

    def _read(self, partition: TopicPartition) -> Contents:
        log = self._leader_log(partition)
        if log is None:
            return Contents()
        if self._ends.get(partition) != log.end_offset:
            self._ends[partition] = int(log.end_offset)
            self._contents[partition] = contents_of(log)
        return self._contents[partition]

    def _is_copied(self) -> bool:
        for partition in self._sources():
            source, target = self._read(partition), self._read(TopicPartition(COPIES, partition.partition))
            if any(each.is_committed is None for each in source.records):
                return False  # The markers of a commit may come late; it is to be copied as well.
            wanted = sum(1 for each in source.records if each.is_committed)
            if sum(1 for each in target.records if each.is_committed) < wanted:
                return False
        return True

    def _is_stable(self) -> bool:
        for partition in self._cluster.assignments():
            if partition.topic in (WRITTEN, COPIES, OFFSETS_TOPIC) and partition not in self._unclean:
                log = self._leader_log(partition)
                if log is None or log.last_stable_offset < log.end_offset:
                    return False
        return True

    def _is_read(self) -> bool:
        for reader in self._crew.readers:
            for partition in reader.logs:
                log = self._leader_log(partition)
                position = reader.core.position(partition)
                if partition not in self._unclean and (
                    log is None or position is None or position < log.end_offset
                ):
                    return False
        return True
