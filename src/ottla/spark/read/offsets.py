"""Which partitions and which offsets a query means, asked of the cluster by the driver."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.admin.asking import until_done
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.client.engine.engine import Engine
from ottla.client.engine.metadata import PartitionInfo
from ottla.client.engine.tasks import Operation, sleep
from ottla.client.errors import BrokerError, ClientError, ConnectionLost, UnsupportedByBroker
from ottla.client.fetching.epochs import EpochEnd, ends_of_epochs
from ottla.client.fetching.offsets import list_offsets
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicId, TopicPartition, topic_id_text
from ottla.model.timestamps import LATEST
from ottla.spark.errors import SparkRefused, refuse
from ottla.spark.options.kafka_settings import BOOTSTRAP, KafkaSettings
from ottla.spark.options.read import Ago, Bound, ByOffset, ByTime, End, ReadOptions, Subscription
from ottla.wire.apis.metadata import MetadataResponse, MetadataResponseTopic
from ottla.wire.primitives import ZERO_UUID

Offsets = dict[TopicPartition, int]
TopicIds = dict[str, str]

IDS = "topic ids"
"""Where a checkpoint keeps which topics are meant; no topic can have a name with a space."""
EPOCHS = "leader epochs"
"""Where it keeps in which leader epoch each partition ended: a log that is cut leaves it sooner."""
BEGAN = "began at"
"""Where it keeps the offsets at which a batch began, if the batch before does not say it."""


@dataclass(frozen=True, slots=True)
class Latest:
    """Where partitions end, in which leader epochs, and the ids of their topics."""

    ends: Offsets
    epochs: Offsets
    ids: TopicIds


class ClusterView:
    """The cluster as a query's driver sees it."""

    def __init__(self, client: Client, options: ReadOptions) -> None:
        self._client = client
        self._options = options
        self.topic_ids: TopicIds = {}
        """Of the topics that were last asked for, where the cluster has ids."""
        self.epochs: Offsets = {}
        """The leader epochs of the offsets that were last asked for, where the cluster says them."""

    def partitions(self, *, refuses_missing: bool = True) -> list[TopicPartition]:
        """The partitions that the subscription means now, in order. A topic that is missing is refused.

        A stream that has begun does not refuse it: for it the topic's partitions are gone.
        """
        subscription = self._options.subscription
        if subscription.pattern is not None:
            return self._matching(subscription.pattern)
        names = subscription.topics or tuple(dict.fromkeys(p.topic for p in subscription.partitions))
        counts = self._counts(names)
        option = "subscribe" if subscription.topics else "assign"
        for name in names:
            if refuses_missing and name not in counts:
                raise refuse(option, name, "the cluster has no such topic", "create it, or correct the name")
        if subscription.partitions:
            if refuses_missing:
                _check_assigned(subscription, counts)
            return sorted(p for p in subscription.partitions if p.partition in counts.get(p.topic, ()))
        return sorted(TopicPartition(name, n) for name, numbers in counts.items() for n in numbers)

    def latest(self, known: Offsets, known_ids: TopicIds) -> Latest:
        """Where the partitions end that there are.

        Ends are asked for by name: if a topic was made again meanwhile, they are asked for once more. So are
        they, as Spark's connector does, while one lies before an offset that is known to have been there.
        """
        attempts = self._options.fetch_offset_retries
        while True:
            ends = self._retried(lambda: dict.fromkeys(self.partitions(refuses_missing=False), LATEST))
            ids = self.topic_ids
            if ids and remade(ids, _ids(existing_topics(self._client, self._options.kafka, ids))):
                continue
            others = remade(known_ids, ids)
            attempts -= 1
            if attempts <= 0 or not any(
                ends.get(p, offset) < offset and p.topic not in others for p, offset in known.items()
            ):
                return Latest(ends, self.epochs, ids)
            self._pause()

    def resolve(self, bound: Bound, partitions: Iterable[TopicPartition]) -> Offsets:
        """The offsets that a bound stands for."""
        wanted = list(partitions)
        match bound:
            case End():
                return self.ends(wanted, bound.offset)
            case ByOffset():
                _check_all_named(bound.option, bound.offsets, wanted)
                return self._explicit(bound.offsets)
            case ByTime():
                times = bound.times_ms
                if times is None:
                    assert bound.everywhere_ms is not None, "a bound by time has a time"
                    times = dict.fromkeys(wanted, bound.everywhere_ms)
                else:
                    _check_all_named(bound.option, times, wanted)
                return self._by_time(bound.option, times, bound.falls_back_to_latest)
            case Ago():
                now_ms = time.time_ns() // 1_000_000
                return self._by_time(bound.option, dict.fromkeys(wanted, now_ms - bound.span_ms), True)

    def ends(self, partitions: Iterable[TopicPartition], which: int) -> Offsets:
        """The earliest or the latest offset of each partition."""
        return self._ask(dict.fromkeys(partitions, which))

    def _explicit(self, named: Mapping[TopicPartition, int]) -> Offsets:
        symbols = {partition: offset for partition, offset in named.items() if offset < 0}
        found = self._ask(symbols)
        return {partition: found.get(partition, offset) for partition, offset in named.items()}

    def _by_time(self, option: str, times: Mapping[TopicPartition, int], falls_back: bool) -> Offsets:
        found = self._ask(times)
        missing = [partition for partition, offset in found.items() if offset < 0]
        if missing and not falls_back:
            first = missing[0]
            raise refuse(
                option,
                str(times[first]),
                f"{first} has no record at or after that time",
                "take an earlier time, or startingOffsetsByTimestampStrategy=latest",
            )
        return found | self._ask(dict.fromkeys(missing, LATEST))

    def _ask(self, times: Mapping[TopicPartition, int]) -> Offsets:
        return self._retried(lambda: times)

    def _retried(self, wanted: Callable[[], Mapping[TopicPartition, int]]) -> Offsets:
        """Every attempt asks what is wanted: a topic that was deleted meanwhile need not be by then."""
        isolation = self._options.kafka.consumer.isolation_number
        retries = self._options.fetch_offset_retries
        while times := wanted():
            try:
                found = self._client.run(list_offsets, times, isolation_level=isolation)
            except ClientError as error:
                if retries <= 0 or not error.is_retriable:
                    raise unreachable(self._options.kafka, error) from error
                retries -= 1
                self._pause()
            else:
                self.epochs = {p: row.leader_epoch for p, row in found.items() if row.leader_epoch >= 0}
                return {partition: row.offset for partition, row in found.items()}
        return {}

    def cuts(self, read: Offsets, epochs: Offsets, ids: TopicIds) -> dict[TopicPartition, EpochEnd]:
        """Logs that leave the epoch in which they were read before the offset up to which they were.

        An end of -1: the leader's log has nothing of that epoch or of those before it. Epochs are asked for
        by name: a topic that no longer has the id it had in ``ids`` is another, and its log is not a cut one.
        """
        try:
            ends = self._client.run(ends_of_epochs, epochs)
        except UnsupportedByBroker:
            return {}
        except ClientError as error:
            raise unreachable(self._options.kafka, error) from error
        cut = {partition: end for partition, end in ends.items() if end.end_offset < read[partition]}
        topics = {partition.topic for partition in cut}
        others = remade(ids, _ids(existing_topics(self._client, self._options.kafka, topics))) if cut else ()
        return {partition: end for partition, end in cut.items() if partition.topic not in others}

    def leader_of(self, partition: TopicPartition) -> PartitionInfo | None:
        """Who leads a partition now, as far as is known."""
        return self._client.engine.metadata.partition(partition)

    def _pause(self) -> None:
        self._client.run(lambda _: sleep(self._options.fetch_offset_retry_interval_ms))

    def _matching(self, pattern: str) -> list[TopicPartition]:
        """As Spark's connector does it: anywhere in the name, and never Kafka's own topics."""
        matches = re.compile(pattern).search
        topics = existing_topics(self._client, self._options.kafka, None)
        counts = self._counted(
            {name: topic for name, topic in topics.items() if not topic.is_internal and matches(name)}
        )
        return sorted(TopicPartition(name, n) for name, numbers in counts.items() for n in numbers)

    def _counts(self, names: Iterable[str]) -> dict[str, list[int]]:
        return self._counted(existing_topics(self._client, self._options.kafka, names))

    def _counted(self, topics: Mapping[str, MetadataResponseTopic]) -> dict[str, list[int]]:
        self.topic_ids = _ids(topics)
        return {name: _numbers(topic) for name, topic in topics.items()}


def partition_numbers(
    client: Client, kafka: KafkaSettings, names: Iterable[str] | None
) -> dict[str, list[int]]:
    """The partitions of these topics, or of all; topics that do not exist are left out."""
    return {name: _numbers(topic) for name, topic in existing_topics(client, kafka, names).items()}


def _ids(topics: Mapping[str, MetadataResponseTopic]) -> TopicIds:
    return {
        name: topic_id_text(TopicId(topic.topic_id))
        for name, topic in topics.items()
        if topic.topic_id != ZERO_UUID
    }


def _numbers(topic: MetadataResponseTopic) -> list[int]:
    return sorted(row.partition_index for row in topic.partitions)


def existing_topics(
    client: Client, kafka: KafkaSettings, names: Iterable[str] | None
) -> dict[str, MetadataResponseTopic]:
    """These topics, or all, as the cluster describes them; those that do not exist are left out."""
    try:
        response = client.run(settled_topics, None if names is None else list(names))
    except ClientError as error:
        raise unreachable(kafka, error) from error
    found: dict[str, MetadataResponseTopic] = {}
    for topic in response.topics:
        if topic.error_code in _MISSING:
            continue
        if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise SparkRefused(f"topic {topic.name} may not be read", "ask for the right DESCRIBE on it")
        found[topic.name or ""] = topic
    return found


_MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
_SETTLED = (ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, *_MISSING)


def settled_topics(engine: Engine, names: list[str] | None) -> Operation[MetadataResponse]:
    """What the cluster says once it knows.

    A cluster that has just started may say that a topic's leader is not available, and name no partition,
    or may list no topic at all: that is not yet an answer.
    """

    def attempt(left_ms: int) -> Operation[MetadataResponse]:
        response = yield from describe_topics(engine, names, left_ms)
        if names is None and response.controller_id < 0:
            raise ConnectionLost("the cluster has no controller at the moment")
        for topic in response.topics:
            if topic.error_code not in _SETTLED:
                raise BrokerError(topic.error_code, topic.name)
        return response

    return until_done(engine, "Metadata", None, attempt)


def unreachable(kafka: KafkaSettings, error: ClientError) -> SparkRefused:
    """The cluster does not say what was asked of it."""
    servers = ",".join(f"{host}:{port}" for host, port in kafka.client.bootstrap_servers)
    return refuse(
        BOOTSTRAP, servers, str(error), "see that the brokers run and are reachable from the driver"
    )


def _check_assigned(subscription: Subscription, counts: Mapping[str, list[int]]) -> None:
    for partition in subscription.partitions:
        if partition.partition not in counts[partition.topic]:
            raise refuse(
                "assign",
                str(partition),
                f"the topic has partitions {counts[partition.topic]}",
                "choose from these",
            )


def _check_all_named(
    option: str, named: Mapping[TopicPartition, int], wanted: Iterable[TopicPartition]
) -> None:
    missing = sorted(set(wanted) - set(named))
    unknown = sorted(set(named) - set(wanted))
    if missing:
        listed = ", ".join(map(str, missing))
        raise refuse(
            option,
            to_json(named),
            f"it leaves out {listed}",
            "name every partition; -2 is earliest, -1 latest",
        )
    if unknown:
        listed = ", ".join(map(str, unknown))
        raise refuse(
            option, to_json(named), f"it names {listed}, which the query does not read", "remove them"
        )


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    """Offsets as people write them in options."""
    import json

    return json.dumps(as_dict(offsets))


def as_dict(
    offsets: Mapping[TopicPartition, int],
    ids: TopicIds | None = None,
    began: Mapping[TopicPartition, int] | None = None,
    epochs: Mapping[TopicPartition, int] | None = None,
) -> dict[str, dict[str, Any]]:
    """Offsets as a checkpoint keeps them: Spark's own form, always in the same order, and the topics' ids."""
    nested: dict[str, dict[str, Any]] = {}
    for partition in sorted(offsets):
        nested.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    known = {topic: ids[topic] for topic in nested if topic in ids} if ids else {}
    if known:
        nested[IDS] = known
    if began:
        nested[BEGAN] = as_dict(began)
    in_epochs = {p: epochs[p] for p in offsets if p in epochs} if epochs else {}
    if in_epochs:
        nested[EPOCHS] = as_dict(in_epochs)
    return nested


def from_dict(nested: Mapping[str, Mapping[str, Any]]) -> Offsets:
    """The offsets that ``as_dict`` wrote."""
    return {
        TopicPartition(topic, int(number)): offset
        for topic, partitions in nested.items()
        for number, offset in partitions.items()
        if topic not in (IDS, BEGAN, EPOCHS)
    }


def ids_of(nested: Mapping[str, Mapping[str, Any]]) -> TopicIds:
    """The ids that ``as_dict`` wrote; none in a checkpoint that knew none."""
    return dict(nested.get(IDS, {}))


def began_at(nested: Mapping[str, Mapping[str, Any]]) -> Offsets:
    """Where the batch that ends here began, as far as ``as_dict`` was told."""
    return from_dict(nested.get(BEGAN, {}))


def epochs_of(nested: Mapping[str, Mapping[str, Any]]) -> Offsets:
    """In which leader epochs these offsets were the ends; none in a checkpoint that knew none."""
    return from_dict(nested.get(EPOCHS, {}))


def remade(before: TopicIds, now: TopicIds) -> set[str]:
    """Topics that bear the same name as before and are others."""
    return {topic for topic, known in before.items() if now.get(topic, known) != known}
