"""Reading: the batch reader, and what it shares with the stream reader."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ottla.model.ids import TopicPartition, topic_id_from_text
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.spark.errors import DataLoss, SparkRefused
from ottla.spark.options.read import Bound, ByOffset, End, ReadOptions
from ottla.spark.read.offsets import ClusterView, Offsets, TopicIds
from ottla.spark.read.ranges import OffsetRange, split_ranges
from ottla.spark.runtime.connections import client_for
from ottla.spark.runtime.worker import settle_worker


def read_range(options: ReadOptions, schema: StructType, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The rows of a range, in order, as Arrow batches of the schema's columns. Runs in a task."""
    from ottla.spark.read.columns import ColumnDecoder, arrow_schema
    from ottla.spark.read.fetch import RangeFetcher

    consumer = options.kafka.consumer
    fetcher = RangeFetcher(
        client_for(options.kafka.client),
        consumer,
        wanted,
        poll_timeout_ms=options.poll_timeout_ms,
        fail_on_data_loss=options.fail_on_data_loss,
    )
    decoder = ColumnDecoder(
        wanted.partition,
        arrow_schema(schema.names),
        is_committed_only=consumer.isolation_level == "read_committed",
        checks_crcs=consumer.check_crcs,
    )
    for chunk in fetcher.chunks():
        yield from decoder.decode(chunk, wanted.end)
        settle_worker()


def plan_ranges(
    options: ReadOptions,
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    topic_ids: TopicIds,
    from_earliest: Collection[TopicPartition] = (),
) -> list[OffsetRange]:
    """The ranges between two sets of offsets, split as the options say."""
    ids = {topic: topic_id_from_text(text) for topic, text in topic_ids.items()}
    ranges = [
        OffsetRange(p, start[p], end[p], ids.get(p.topic), p in from_earliest)
        for p in sorted(end)
        if p in start
    ]
    return split_ranges(ranges, options.min_partitions, options.max_records_per_partition)


class BatchReader(DataSourceReader):
    """Reads what lies between the starting and the ending offsets, as they are when the query is planned."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """One range for each partition, or more if the options ask for it."""
        options = self._options
        view = ClusterView(client_for(options.kafka.client), options)
        partitions = view.partitions()
        start = view.resolve(options.starting, partitions)
        end = view.resolve(options.ending, partitions)
        _check_order(options, start, end)
        if options.ending != End(LATEST):
            end = self._within_log(view, end)
        from_earliest = _from_earliest(options.starting, start)
        if isinstance(options.starting, ByOffset) and options.fail_on_data_loss:
            _check_kept(view, {p: start[p] for p in start if p not in from_earliest}, end)
        ranges: Sequence[InputPartition] = plan_ranges(options, start, end, view.topic_ids, from_earliest)
        # Spark calls read() with None when there is no partition; an empty range reads nothing.
        return ranges or [OffsetRange(TopicPartition("", 0), 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        assert isinstance(partition, OffsetRange), "Spark hands back our own partitions"
        if partition.size <= 0:
            return iter(())
        return read_range(self._options, self._schema, partition)

    def _within_log(self, view: ClusterView, end: Offsets) -> Offsets:
        """Offsets that do not exist yet cannot be waited for in a batch."""
        latest = view.ends(end, LATEST)
        beyond = {p: (latest[p], offset) for p, offset in end.items() if offset > latest[p]}
        if beyond and self._options.fail_on_data_loss:
            partition, (last, offset) = next(iter(beyond.items()))
            raise DataLoss(
                f"option endingOffsets: {partition} ends at {last}, before {offset}",
                "take an offset that exists, latest, or failOnDataLoss=false",
            )
        return {p: min(offset, latest[p]) for p, offset in end.items()}


def _from_earliest(starting: Bound, start: Offsets) -> set[TopicPartition]:
    """The partitions that are read from wherever their log begins."""
    if isinstance(starting, ByOffset):
        return {partition for partition, offset in starting.offsets.items() if offset == EARLIEST}
    return set(start) if starting == End(EARLIEST) else set()


def _check_order(options: ReadOptions, start: Offsets, end: Offsets) -> None:
    """A start behind its end is a mistake, not lost data: failOnDataLoss has no say in it."""
    starting, ending = options.starting, options.ending
    for partition, offset in start.items():
        until = end[partition]
        if offset <= until:
            continue
        if not isinstance(starting, End) and isinstance(ending, End):
            raise SparkRefused(
                f"option {starting.option}: {partition} ends at {until}, before {offset}",
                "take an offset that exists, or -2 (earliest)",
            )
        names = " and ".join(bound.option for bound in (starting, ending) if not isinstance(bound, End))
        raise SparkRefused(
            f"option {names}: {partition} would be read from {offset} to {until}",
            "let the end not lie before the start",
        )


def _check_kept(view: ClusterView, start: Offsets, end: Offsets) -> None:
    """Offsets that are not there any more are told here, before a task falls over them."""
    wanted = [partition for partition, offset in start.items() if offset < end[partition]]
    for partition, first in view.ends(wanted, EARLIEST).items():
        behind = min(first, end[partition])
        if start[partition] < behind:
            raise DataLoss(
                f"option startingOffsets: offsets [{start[partition]}, {behind}) of {partition} are no "
                f"longer in the log, which begins at {first}",
                "begin there, or at -2 (earliest), or go on without them with failOnDataLoss=false",
            )
