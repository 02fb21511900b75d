"""Streaming reads: offsets from trigger to trigger. Spark's checkpoint is the only memory that counts."""

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from ottla.client.admin.groups import alter_group_offsets
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST
from ottla.spark.errors import DataLoss
from ottla.spark.options.read import ReadOptions
from ottla.spark.read.batch import plan_ranges, read_range
from ottla.spark.read.offsets import (
    ClusterView,
    Latest,
    Offsets,
    TopicIds,
    as_dict,
    began_at,
    epochs_of,
    from_dict,
    ids_of,
    remade,
)
from ottla.spark.read.ranges import OffsetRange, limited
from ottla.spark.read.receipts import FindReceipt, cut_told, find_receipt
from ottla.spark.runtime.connections import client_for

log = logging.getLogger(__name__)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver and reads their ranges in tasks."""

    def __init__(
        self, options: ReadOptions, schema: StructType, find_receipt: FindReceipt = find_receipt
    ) -> None:
        self._options = options
        self._find_receipt = find_receipt
        self._schema = schema
        self._initial: Offsets | None = None
        self._initial_ids: TopicIds = {}
        self._ends_where_it_is = False
        self._initial_epochs: Offsets = {}
        self._available_now: Latest | None = None
        self._planned: dict[str, Any] | None = None
        """Where the batch ends that was planned last."""
        self._latest: Offsets = {}
        self._last_batch_s: float | None = None
        self._committed: Offsets = {}
        self._earliest: Offsets = {}
        """Where partitions begin that appeared while the query ran."""
        self._gone: set[TopicPartition] = set()
        """Partitions whose end has been told."""

    # On the driver

    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins; the same however often Spark asks."""
        if self._initial is None:
            view = self._view()
            self._initial = view.resolve(self._options.starting, view.partitions())
            self._initial_ids, self._initial_epochs = view.topic_ids, view.epochs
        return as_dict(self._initial, self._initial_ids, epochs=self._initial_epochs)

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        """Where the next micro-batch ends; ``start`` itself if it shall not begin yet."""
        started = self.initialOffset() if start is None else start  # Without topics it is empty.
        begin = from_dict(started)
        self._commit_to_group({p: offset for p, offset in begin.items() if p not in self._gone})
        view = self._view()
        latest, cuts = self._end_of_log(view, begin, started)
        end, ids = dict(latest.ends), ids_of(started) | latest.ids
        self._latest = dict(end)
        self._forget_remade(begin, remade(ids_of(started), latest.ids))
        begin |= cuts
        self._check_lost(begin, end)
        self._pass_over_lost(view, begin, end)
        begin |= self._begin_of_new(view, begin, end)
        if not self._ends_where_it_is and self._waits_for_more(begin, end):
            return dict(started)
        max_rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_offsets_per_trigger
        if max_rows is not None and not isinstance(limit, ReadAllAvailable):
            end = limited(max_rows, begin, end)
        if not cuts and as_dict(end, ids) == as_dict(from_dict(started), ids_of(started)):
            return dict(started)  # To the letter: Spark begins a batch for whatever differs.
        epochs = epochs_of(started) | latest.epochs
        self._planned = as_dict(end, ids, self._to_remember(from_dict(started), begin, end), epochs)
        return self._planned

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """For the query's progress."""
        return as_dict(self._latest) if self._latest else None

    def prepareForTriggerAvailableNow(self) -> None:
        """The query will read up to what there is when its first batch is planned, then end.

        Not sooner: Spark asks only then where to begin, and ``latest`` must not lie beyond the end.
        """
        self._ends_where_it_is = True

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The ranges of a micro-batch; the same ones when it is planned again after a crash."""
        others = remade(ids_of(start), ids_of(end))
        begin = {p: offset for p, offset in from_dict(start).items() if p.topic not in others}
        begin |= began_at(end)
        until = from_dict(end)
        view = self._view()
        if end != self._planned:
            self._tell_cuts(view, until, epochs_of(end), ids_of(end))  # Planned in an earlier life.
        begin |= self._begin_of_new(view, begin, until)
        for partition, offset in until.items():
            if begin[partition] > offset:
                self._lost(f"a batch ended at {offset} of {partition}, and would begin at {begin[partition]}")
        ranges: Sequence[InputPartition] = plan_ranges(self._options, begin, until, ids_of(end))
        return ranges

    def commit(self, end: dict[str, Any]) -> None:
        """Spark says that all before is done; ``latestOffset`` hears it sooner."""

    def stop(self) -> None:
        """Nothing is held that the process's end does not free."""

    # In a task

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range."""
        assert isinstance(partition, OffsetRange), "Spark hands back our own partitions"
        return read_range(self._options, self._schema, partition)

    # Decisions

    def _to_remember(self, given: Offsets, begin: Offsets, end: Offsets) -> Offsets:
        """Where this batch begins, for the partitions of which the checkpoint of the one before does not say.

        Spark keeps no offsets of a query's beginning. It asks for them again when it repeats the first batch,
        and by then ``earliest`` and ``-10 minutes`` may be others.
        """
        is_first = given == self._initial
        return {p: begin[p] for p in end if is_first or begin[p] != given.get(p)}

    def _view(self) -> ClusterView:
        return ClusterView(client_for(self._options.kafka.client), self._options)

    def _end_of_log(
        self, view: ClusterView, begin: Offsets, started: dict[str, Any]
    ) -> tuple[Latest, Offsets]:
        """The latest offsets (of a query that ends by itself, those that it saw first), and from where on
        logs were cut since they were read.

        Epochs are checked after the ends are known: whatever cuts a log later is found by the next batch.
        """
        given = ids_of(started)
        latest = self._available_now or view.latest(begin, given)
        others = remade(given, latest.ids)
        epochs = {p: e for p, e in epochs_of(started).items() if p in latest.ends and p.topic not in others}
        cuts = self._tell_cuts(view, begin, epochs, latest.ids)
        if cuts:
            latest = view.latest(begin | cuts, given)
        if self._ends_where_it_is and (cuts or self._available_now is None):
            self._available_now = latest
        return latest, cuts

    def _tell_cuts(self, view: ClusterView, read: Offsets, epochs: Offsets, ids: TopicIds) -> Offsets:
        """Logs that were cut below what was read of them (an unclean election does that): from where on."""
        found = view.cuts(read, epochs, ids) if epochs else {}
        for partition, end in found.items():
            receipt = self._find_receipt(self._options.kafka.client, partition, epochs[partition])
            leader = view.leader_of(partition)
            self._lost(cut_told(partition, read[partition], epochs[partition], end, leader, receipt))
        return {partition: max(end.end_offset, 0) for partition, end in found.items()}

    def _begin_of_new(self, view: ClusterView, begin: Offsets, end: Offsets) -> Offsets:
        """Partitions that the last batch did not know are read from their very first record."""
        new = [partition for partition in end if partition not in begin]
        unknown = [partition for partition in new if partition not in self._earliest]
        if unknown:
            self._earliest |= view.ends(unknown, EARLIEST)
        for partition in unknown:
            if (first := self._earliest[partition]) > 0:
                self._lost(f"offsets [0, {first}) of the new partition {partition}")
        return {partition: self._earliest[partition] for partition in new}

    def _forget_remade(self, begin: Offsets, topics: set[str]) -> None:
        """A topic of the same name that is another has lost what was not read, and is read from its start."""
        for partition in [p for p in begin if p.topic in topics]:
            offset = begin.pop(partition)
            self._earliest.pop(partition, None)
            if partition in self._gone:
                self._gone.discard(partition)
                continue
            self._lost(
                f"topic {partition.topic} was deleted and made again; {partition} was read up to {offset}"
            )

    def _check_lost(self, begin: Offsets, end: Offsets) -> None:
        """Topics that were deleted, and logs that have become shorter, have lost what was not read.

        A query that goes on all the same begins at the new log's end. It remembers how far it had read a
        partition that is gone: if the same one comes back it is not read again, and if another takes its
        place, its topic's id tells.
        """
        for partition, offset in begin.items():
            if partition not in end:
                if partition not in self._gone:
                    self._lost(f"{partition} is gone; it was read up to offset {offset}")
                    self._gone.add(partition)
                end[partition] = offset
                continue
            self._gone.discard(partition)
            if end[partition] < offset:
                self._lost(f"{partition} ends at {end[partition]}, and was read up to {offset}")
                begin[partition] = end[partition]

    def _pass_over_lost(self, view: ClusterView, begin: Offsets, end: Offsets) -> None:
        """What retention took before it was read is told here, before a task falls over it.

        A query that goes on does so where the log begins, in one step: limits count what can be read.
        """
        unread = [partition for partition, offset in begin.items() if offset < end.get(partition, offset)]
        for partition, first in view.ends(unread, EARLIEST).items():
            offset, behind = begin[partition], min(first, end[partition])
            if offset < behind:
                where = f"are no longer in the log, which begins at {first}"
                self._lost(f"offsets [{offset}, {behind}) of {partition} {where}")
                begin[partition] = behind

    def _lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLoss(
                f"data loss: {what}",
                "with failOnDataLoss=false the query goes on without; after a topic was made again, start "
                "with a new checkpoint, and a sink of files in a new directory",
            )
        log.warning("data loss what=%s", what)

    def _waits_for_more(self, begin: Offsets, end: Offsets) -> bool:
        """``minOffsetsPerTrigger``: too little has come, and ``maxTriggerDelay`` is not over.

        As in Spark's connector, the delay counts from the last batch, and the first does not wait.
        """
        least = self._options.min_offsets_per_trigger
        if least is None:
            return False
        now_s = time.monotonic()
        is_due = (
            self._last_batch_s is None
            or (now_s - self._last_batch_s) * 1000 >= self._options.max_trigger_delay_ms
        )
        if not is_due and sum(max(0, end[p] - begin[p]) for p in end) < least:
            return True
        self._last_batch_s = now_s
        return False

    def _commit_to_group(self, done: dict[TopicPartition, int]) -> None:
        """Show the query's progress to every tool that reads group offsets. Never in the query's way."""
        group = self._options.offset_commit_group
        if group is None or done == self._committed:
            return
        try:
            codes = client_for(self._options.kafka.client).run(
                alter_group_offsets, group, done, timeout_ms=5_000
            )
        except ClientError as error:
            log.warning("offsets not committed group=%s reason=%s", group, error)
            return
        refused = {str(partition): code for partition, code in codes.items() if code}
        if refused:
            log.warning("offsets not committed group=%s refused=%s", group, refused)
        else:
            self._committed = done
