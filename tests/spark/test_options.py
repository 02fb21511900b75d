"""Options mean what they mean in Spark's own connector, and what cannot be is refused by name."""

from __future__ import annotations

from functools import partial

import pytest

pytest.importorskip("pyspark")

from ottla.model.ids import TopicPartition
from ottla.spark.errors import OptionRefused
from ottla.spark.options.read import EARLIEST, LATEST, Ago, ByOffset, ByTime, End, read_options
from ottla.spark.options.write import write_options

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}
SINK = {"kafka.bootstrap.servers": "localhost:9092"}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"subscribe": "orders"}, "kafka.bootstrap.servers"),
        ({**BASE, "kafka.bootstrap.servers": "nowhere"}, "'nowhere' is not host:port"),
        ({"kafka.bootstrap.servers": "h:1"}, "exactly one of subscribe, subscribePattern and assign"),
        ({**BASE, "assign": '{"orders":[0]}'}, "exactly one of"),
        ({**BASE, "colour": "red"}, "option colour: there is no such option"),
        ({**BASE, "kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset"),
        ({**BASE, "kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit"),
        ({**BASE, "kafka.key.deserializer": "x"}, "kafka.key.deserializer"),
        ({**BASE, "kafka.interceptor.classes": "x"}, "kafka.interceptor.classes"),
        ({**BASE, "kafka.linger.seconds": "1"}, "Ottla's client does not know it"),
        ({**BASE, "kafka.compression.type": "lz4"}, "setting of the sink"),
        ({**BASE, "kafka.fetch.max.bytes": "many"}, "no whole number"),
        ({**BASE, "startingOffsets": "{"}, "startingOffsets='{'"),
        ({**BASE, "startingOffsets": '{"orders":{"0":-3}}'}, "-3 is no offset"),
        ({**BASE, "startingOffsets": "latest"}, "cannot begin at the latest"),
        ({**BASE, "startingOffsets": "-10 parsecs"}, "no unit"),
        ({**BASE, "endingOffsets": "earliest"}, "cannot end at the earliest"),
        ({**BASE, "minPartitions": "0"}, "minPartitions='0'"),
        ({**BASE, "includeHeaders": "yes"}, "includeHeaders='yes'"),
        ({**BASE, "startingOffsetsByTimestampStrategy": "guess"}, "no such strategy"),
        ({"kafka.bootstrap.servers": "h:1", "subscribePattern": "("}, "no regular expression"),
        ({"kafka.bootstrap.servers": "h:1", "assign": '{"t":"0"}'}, "assign="),
    ],
)
def test_what_cannot_be_is_refused_by_name(options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionRefused) as refused:
        read_options(options, is_stream=False)

    assert named in str(refused.value)
    assert "; " in str(refused.value), "a refusal says what to do"


def test_a_stream_refuses_an_end() -> None:
    with pytest.raises(OptionRefused, match="a stream has no end"):
        read_options({**BASE, "endingOffsets": "latest"}, is_stream=True)


def test_batches_begin_at_the_earliest_and_streams_at_the_latest_offset() -> None:
    assert read_options(BASE, is_stream=False).starting == End(EARLIEST)
    assert read_options(BASE, is_stream=True).starting == End(LATEST)


def test_a_timestamp_goes_before_offsets_by_timestamp_and_these_before_offsets() -> None:
    offsets = {**BASE, "startingOffsets": '{"orders":{"0":5,"1":-2}}'}
    by_time = {**offsets, "startingOffsetsByTimestamp": '{"orders":{"0":1000}}'}
    all_three = {**by_time, "startingTimestamp": "2000"}

    assert read_options(offsets, is_stream=False).starting == ByOffset(
        "startingOffsets", {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): EARLIEST}
    )
    assert read_options(by_time, is_stream=False).starting == ByTime(
        "startingOffsetsByTimestamp", times_ms={TopicPartition("orders", 0): 1000}
    )
    assert read_options(all_three, is_stream=False).starting == ByTime(
        "startingTimestamp", everywhere_ms=2000
    )


@pytest.mark.parametrize(
    ("text", "ms"),
    [("15m", 900_000), ("500ms", 500), ("2 hours", 7_200_000), ("30 s", 30_000), ("1500", 1_500)],
)
def test_a_duration_has_a_unit_or_is_in_milliseconds(text: str, ms: int) -> None:
    assert read_options({**BASE, "maxTriggerDelay": text}, is_stream=True).max_trigger_delay_ms == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("-10 minutes", 600_000),
        ("-1 day", 86_400_000),
        ("-30s", 30_000),
        ("-500 ms", 500),
        ("-2 milliseconds", 2),
    ],
)
def test_a_start_can_be_relative(text: str, ms: int) -> None:
    assert read_options({**BASE, "startingOffsets": text}, is_stream=True).starting == Ago(
        "startingOffsets", ms
    )


def test_names_of_options_have_no_case() -> None:
    options = read_options({**BASE, "INCLUDEHEADERS": "TRUE", "failOnDataLoss": "false"}, is_stream=False)

    assert (options.include_headers, options.fail_on_data_loss) == (True, False)


def test_settings_of_the_client_reach_it() -> None:
    options = {**BASE, "kafka.isolation.level": "read_committed", "kafka.max.partition.fetch.bytes": "77"}

    kafka = read_options(options, is_stream=False).kafka

    assert (kafka.consumer.isolation_level, kafka.consumer.max_partition_fetch_bytes) == (
        "read_committed",
        77,
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({**SINK, "topic": " "}, "topic=' '"),
        ({**SINK, "subscribe": "orders"}, "a sink has no such option"),
        ({**SINK, "kafka.value.serializer": "x"}, "kafka.value.serializer"),
        ({**SINK, "kafka.compression.type": "rar"}, "choose from none, gzip, snappy, lz4, zstd"),
        ({**SINK, "kafka.isolation.level": "read_committed"}, "setting of the source"),
    ],
)
def test_what_a_sink_cannot_do_is_refused_by_name(options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionRefused) as refused:
        write_options(options)

    assert named in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "kafka.sasl.jaas.config",
        "kafka.ssl.keystore.password",
        "kafka.value.serializer",
        "kafka.token",
        "password",
    ],
)
@pytest.mark.parametrize("is_sink", [True, False])
def test_a_refusal_of_a_name_never_shows_the_value(name: str, is_sink: bool) -> None:
    secret = {**SINK, name: "hunter2"} if is_sink else {**BASE, name: "hunter2"}
    read = write_options if is_sink else partial(read_options, is_stream=True)

    with pytest.raises(OptionRefused) as refused:
        read(secret)

    assert name in str(refused.value)
    assert "hunter2" not in str(refused.value)
