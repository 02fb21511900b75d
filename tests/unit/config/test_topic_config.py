"""A topic's own settings."""

import pytest

from ottla.config.log import LogConfig
from ottla.config.setting import BadValue, text_of
from ottla.config.topic_config import check_new_override, check_topic_overrides, with_overrides


def test_overrides_replace_what_they_name_and_nothing_else() -> None:
    config = with_overrides(
        LogConfig(retention_ms=5), {"cleanup.policy": "compact,delete", "segment.bytes": "1024"}
    )

    assert config.cleanup_policy == {"compact", "delete"}
    assert config.segment_bytes == 1024
    assert config.retention_ms == 5


def test_an_override_that_cannot_be_read_leaves_the_default_standing() -> None:
    config = with_overrides(LogConfig(), {"segment.bytes": "many", "no.such": "1", "retention.ms": "9"})

    assert config == LogConfig(retention_ms=9)


def test_the_old_timestamp_difference_counts_where_its_successors_are_silent() -> None:
    config = with_overrides(
        LogConfig(),
        {"message.timestamp.difference.max.ms": "10", "message.timestamp.after.max.ms": "20"},
    )

    assert config.message_timestamp_before_max_ms == 10
    assert config.message_timestamp_after_max_ms == 20


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no.such.setting", "1"),
        ("retention.ms", "-2"),
        ("retention.ms", None),
        ("cleanup.policy", "burn"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("leader.replication.throttled.replicas", "0-1"),
        ("remote.storage.enable", "true"),
        ("remote.log.copy.disable", "true"),
        ("remote.log.delete.on.disable", "TRUE"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "10"),
        ("compression.gzip.level", "-2"),
        ("compression.lz4.level", "0"),
        ("compression.lz4.level", "18"),
        ("compression.zstd.level", "23"),
        ("compression.zstd.level", "-131073"),
        ("message.format.version", "banana"),
        ("message.format.version", "3.10"),
        ("message.format.version", "2.8-IV2"),
        ("message.format.version", "4.0"),
        ("message.format.version", ""),
        ("preallocate", "1"),
    ],
)
def test_what_a_topic_may_not_set_is_refused_by_name(name: str, text: str | None) -> None:
    with pytest.raises(BadValue, match=name.replace(".", r"\.")):
        check_new_override(name, text)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("compression.gzip.level", ("-1", "1", "9")),
        ("compression.zstd.level", ("-131072", "0", "22")),
        ("message.format.version", ("0.8.0", "0.10.2", "0.10.2.1", "2.8", "2.8.1", "2.8-IV1", "3.9-IV0")),
        ("remote.log.copy.disable", ("false",)),
    ],
)
def test_what_a_topic_may_set_is_taken(name: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        assert check_topic_overrides({name: text}) == []


@pytest.mark.parametrize("text", ["*", "", "0:1,1:2"])
def test_throttled_replicas_are_pairs_or_all(text: str) -> None:
    assert check_topic_overrides({"leader.replication.throttled.replicas": text}) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (("a", "b"), "a,b"),
        ((), ""),
        (0.5, "0.5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (None, None),
        (7, "7"),
    ],
)
def test_values_are_shown_as_java_shows_them(value: object, text: str | None) -> None:
    assert text_of(value) == text  # type: ignore[arg-type]
