"""The page that Prometheus reads: the names of kafka_exporter, so that dashboards over it find theirs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ottla.console.read.groups import Groups
from ottla.console.read.world import World
from ottla.insight.picture import PartitionSeen, Picture
from ottla.model.ids import TopicPartition

Sample = tuple[dict[str, str], int]


def metrics_text(world: World, groups: Groups) -> str:
    """All of it, in the text format."""
    assert world.picture is not None, "metrics are made after the first look"
    return "".join([*_of_topics(world.picture), *_of_offsets(world.picture, groups), *_of_groups(groups)])


def _of_topics(picture: Picture) -> Iterator[str]:
    counts = Counter(name.topic for name in picture.partitions)
    yield from _metric("kafka_brokers", "Number of brokers in the cluster.", [({}, len(picture.brokers))])
    topics: list[Sample] = [({"topic": topic}, count) for topic, count in sorted(counts.items())]
    yield from _metric("kafka_topic_partitions", "Number of partitions of the topic.", topics)
    for name, (help_, value) in _OF_A_PARTITION.items():
        rows = [(_labels(key), value(seen)) for key, seen in sorted(picture.partitions.items())]
        yield from _metric(f"kafka_topic_partition_{name}", help_, rows)


_OF_A_PARTITION: dict[str, tuple[str, Callable[[PartitionSeen], int]]] = {
    "leader": ("The leader's id.", lambda seen: seen.leader),
    "leader_is_preferred": (
        "1 if the first replica leads.",
        lambda seen: int(seen.leader == next(iter(seen.replicas), None)),
    ),
    "replicas": ("Number of replicas.", lambda seen: len(seen.replicas)),
    "in_sync_replica": ("Number of replicas in sync.", lambda seen: len(seen.isr)),
    "under_replicated_partition": (
        "1 if fewer replicas are in sync than there are.",
        lambda seen: int(len(seen.isr) < seen.replication_factor),
    ),
}


def _of_offsets(picture: Picture, groups: Groups) -> Iterator[str]:
    for name, help_, offsets in (
        ("current", "End of the partition.", groups.ends),
        ("oldest", "Start of the partition.", groups.starts),
    ):
        rows = [
            (_labels(key), offset) for key, offset in sorted(offsets.items()) if key in picture.partitions
        ]
        yield from _metric(f"kafka_topic_partition_{name}_offset", help_, rows)


def _of_groups(groups: Groups) -> Iterator[str]:
    yield from _group_lines(groups)


def _group_lines(groups: Groups) -> Iterator[str]:
    points = [
        ({"consumergroup": group, **_labels(name)}, last)
        for group, windows in sorted(groups.windows.items())
        for name, window in sorted(windows.items())
        if (last := window.last) is not None
    ]
    committed = [(labels, point.committed) for labels, point in points]
    yield from _metric("kafka_consumergroup_current_offset", "Committed offset of the group.", committed)
    lags = [(labels, point.lag) for labels, point in points]
    yield from _metric("kafka_consumergroup_lag", "How many records the group is behind.", lags)


def _labels(name: TopicPartition) -> dict[str, str]:
    return {"partition": str(name.partition), "topic": name.topic}


def _metric(name: str, help_: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {help_}\n# TYPE {name} gauge\n"
    for labels, value in samples:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{{{inside}}} {value}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
