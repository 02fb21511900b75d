"""Pages say what the world knows, as text whatever it holds; their twins say the same."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ottla.client.config import ClientConfig
from ottla.console.app import Console
from ottla.console.live.events import events
from ottla.console.pages.timeline import read_time
from ottla.insight.lag import Point, Window, group_lag
from ottla.model.ids import TopicPartition
from ottla.wire.apis.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from support.client.asgi import Answered, asked
from support.client.pictures import a_picture
from support.client.standing import TOKEN, SaidClient, StandingLooker, a_standing_console

HEADERS = {"Host": "127.0.0.1:8092", "Authorization": f"Bearer {TOKEN.secret}"}
NOW = datetime(2026, 11, 18, 14, 3, 30, tzinfo=UTC)
PATHS = (
    "/",
    "/timeline",
    "/partitions",
    "/partitions/a/0",
    "/brokers/1/leave",
    "/brokers/1/leave?how=crash",
    "/balance",
    "/replicas",
    "/groups",
    "/topics",
    "/topics/a",
    "/brokers",
    "/brokers/1",
    "/configs",
    "/about",
    "/reassign",
    "/configs/change",
    "/create-topic",
    "/topics/a/produce",
    "/groups/offsets",
)


def described(_: Any, **__: Any) -> list[DescribeConfigsResult]:
    """Two brokers that differ in one setting; both have set another; one keeps a secret."""
    return [
        DescribeConfigsResult(
            resource_name=broker,
            configs=[
                a_setting("num.io.threads", threads, "8"),
                a_setting("log.retention.ms", "5", "7"),
                a_setting("ssl.key.password", "s3cret", "", is_sensitive=True),
                a_setting("broker.id", broker, "-1", read_only=True),
            ],
        )
        for broker, threads in (("0", "8"), ("1", "9"))
    ]


def a_setting(name: str, value: str, default: str, **more: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        config_source=5 if value == default else 4,
        synonyms=[DescribeConfigsSynonym(name=name, value=default, source=5)],
        **more,
    )


def a_console(*, has_picture: bool = True) -> Console:
    console = a_standing_console(SaidClient(describe_configs=described))
    if has_picture:
        console.world.saw(a_picture({"a-0": (1, (1, 2, 0), (1, 2)), "a-1": (0, (0, 1), (0,))}))
        console.world.has_history = True
        console.world.recorded([(b"a-0", json.dumps(a_row()).encode())])
    return console


def a_row(**changes: Any) -> dict[str, Any]:
    return {
        "partition": "a-0",
        "kind": "decision",
        "rule": "offline partition",
        "before": {"leader": 0, "leader_epoch": 2, "isr": [0, 1, 2]},
        "after": {"leader": 1, "leader_epoch": 3, "isr": [1, 2]},
        "candidates": [{"broker": 1, "online": True, "in_sync": True}],
        "chosen": 1,
        "why": None,
        "cause": "broker 0 is gone",
        "controller": 2,
        "controller_epoch": 7,
        "time_ms": 1_000,
        **changes,
    }


def ask(console: Console, path: str, **headers: str) -> Answered:
    return asyncio.run(asked(console.application(), path, {**HEADERS, **headers}))


@pytest.mark.parametrize("path", PATHS)
def test_every_page_has_a_twin_under_its_own_address_and_by_what_is_accepted(path: str) -> None:
    console = a_console()
    plain, _, query = path.partition("?")
    twin = ("/index" if plain == "/" else plain) + ".json" + (f"?{query}" if query else "")

    page, named, accepted = (
        ask(console, path),
        ask(console, twin),
        ask(console, path, Accept="application/json"),
    )

    assert (page.status, named.status, accepted.status) == (200, 200, 200)
    assert page.header("content-type").startswith("text/html")
    assert json.loads(named.body).keys() == json.loads(accepted.body).keys()
    assert twin in page.body.decode().replace("&amp;", "&")


def test_a_partition_is_explained_with_history_candidates_and_what_if() -> None:
    twin = json.loads(ask(a_console(), "/partitions/a/0.json").body)

    assert twin["headline"].startswith("a-0 is led by broker 1 since")
    assert twin["events"][0]["headline"] == "broker 1 leads (was broker 0), epoch 3, in sync 1,2"
    assert twin["events"][0]["candidates"] == [{"broker": 1, "online": True, "in_sync": True, "chosen": True}]
    assert twin["replicas"][0]["if_it_died"] == "broker 2 would lead, in sync 2"
    assert twin["frame"]["controller_epoch"] == 7


def test_the_timeline_is_narrowed_by_times_and_says_which_it_cannot_read() -> None:
    console = a_console()

    far = json.loads(ask(console, "/timeline.json?from=2026-11-18T14:00").body)
    wrong = ask(console, "/timeline.json?from=soon")

    assert (far["found"], wrong.status) == (0, 400)
    assert json.loads(wrong.body)["problem"].startswith("'soon' is no time; write 14:02")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("14:02", datetime(2026, 11, 18, 14, 2, tzinfo=UTC)),
        ("14:02:09", datetime(2026, 11, 18, 14, 2, 9, tzinfo=UTC)),
        ("14:10", datetime(2026, 11, 17, 14, 10, tzinfo=UTC)),
        ("2026-11-01T10:00Z", datetime(2026, 11, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_time_of_day_is_one_of_the_last_24_hours(text: str, moment: datetime) -> None:
    assert read_time(text, NOW) == round(moment.timestamp() * 1000)


def test_names_and_causes_are_text() -> None:
    console = a_console()
    hostile = "<script>alert(1)</script>"
    console.world.recorded([(b"a-0", json.dumps(a_row(cause=hostile)).encode())])

    for path in ("/", "/timeline", "/partitions/a/0", f"/partitions?q={hostile}", f"/partitions/{hostile}/0"):
        assert "<script>alert" not in ask(console, path).body.decode()


@pytest.mark.parametrize(
    "path",
    [
        "/partitions/a/9",
        "/partitions/b/0",
        "/partitions/a/x",
        "/brokers/9/leave",
        "/brokers/9",
        "/brokers/x",
        "/topics/z",
        "/topics/z/records",
        "/x",
    ],
)
def test_what_is_not_there_is_one_sentence_and_a_next_step(path: str) -> None:
    refused = ask(a_console(), path, Accept="application/json")

    assert refused.status == 404
    assert json.loads(refused.body).keys() == {"error", "next"}


def test_a_cluster_that_never_answered_is_no_empty_table() -> None:
    console = a_console(has_picture=False)
    console.world.failed("connection refused")

    refused = ask(console, "/", Accept="application/json")

    assert refused.status == 503
    assert "connection refused" in json.loads(refused.body)["error"]


def test_brokers_that_vanish_leave_the_last_picture_with_its_age() -> None:
    console = a_console()
    console.world.seen_at -= 90
    console.world.failed("no broker answers")

    page = ask(console, "/").body.decode()

    assert "The brokers do not answer (no broker answers). This is the picture of 90 s ago." in page
    assert "a-1" in page


def test_without_a_topic_of_decisions_the_page_says_that_there_is_no_history() -> None:
    console = a_console()
    console.world.has_history = False

    page = ask(console, "/").body.decode()

    assert "No history" in page
    assert "What happened last" not in page


def test_an_open_page_hears_of_the_next_picture_and_of_no_older_one() -> None:
    console = a_console()

    async def heard() -> list[bytes]:
        stream = events(console.world, StandingLooker(), console.world.number)  # type: ignore[arg-type]
        first = await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        assert not waiting.done()
        console.world.change()
        return [first, await waiting]

    first, second = asyncio.run(heard())
    assert first.startswith(b"retry:")
    assert second == f"id: {console.world.number}\nevent: picture\ndata: {console.world.number}\n\n".encode()


def with_groups(console: Console) -> Console:
    """One group that stands still in a-0, another that has read all of it."""
    for group, committed in (("slow", 3), ("fast", 10)):
        window = Window()
        for second in range(4):
            window.take(Point(second * 1_000, committed, 10))
        console.groups.states[group] = "Stable"
        console.groups.windows[group] = {TopicPartition("a", 0): window}
        console.groups.lags[group] = group_lag([window])
    console.groups.ends[TopicPartition("a", 0)] = 10
    console.groups.starts[TopicPartition("a", 0)] = 2
    return console


def test_the_group_that_stands_still_comes_first() -> None:
    twin = json.loads(ask(with_groups(a_console()), "/groups.json").body)

    assert twin["sentence"] == "1 group falls behind: slow."
    assert [(row["group"], row["verdict"], row["lag"]) for row in twin["rows"]] == [
        ("slow", "stands still", 7),
        ("fast", "clear", 0),
    ]


def test_prometheus_reads_the_names_of_kafka_exporter() -> None:
    console = with_groups(a_console())
    console.groups.states['a "name"\n'] = "Empty"
    console.groups.windows['a "name"\n'] = console.groups.windows["slow"]

    text = ask(console, "/metrics").body.decode()

    read = {metric.name: metric for metric in text_string_to_metric_families(text)}
    assert sorted(read) == [
        "kafka_brokers",
        "kafka_consumergroup_current_offset",
        "kafka_consumergroup_lag",
        "kafka_topic_partition_current_offset",
        "kafka_topic_partition_in_sync_replica",
        "kafka_topic_partition_leader",
        "kafka_topic_partition_leader_is_preferred",
        "kafka_topic_partition_oldest_offset",
        "kafka_topic_partition_replicas",
        "kafka_topic_partition_under_replicated_partition",
        "kafka_topic_partitions",
    ]
    lags = {row.labels["consumergroup"]: row.value for row in read["kafka_consumergroup_lag"].samples}
    assert lags == {"slow": 7, "fast": 0, 'a "name"\n': 7}


def test_the_map_is_one_byte_a_replica() -> None:
    body = ask(a_console(), "/replicas.bin").body
    length = int.from_bytes(body[:4], "big")

    assert json.loads(body[4 : 4 + length]) == {"brokers": [0, 1, 2], "names": ["a-0", "a-1"]}
    assert list(body[4 + length :]) == [3, 1, 2, 1, 3, 0]


def test_balance_names_the_rack_that_holds_a_partition_twice_and_who_could_lead_again() -> None:
    console = a_console()
    racks = {0: "x", 1: "x", 2: "y"}
    console.world.saw(a_picture({"t-0": (0, (1, 0), (0, 1)), "t-1": (0, (0, 2), (0, 2))}, racks=racks))

    twin = json.loads(ask(console, "/balance.json").body)

    assert twin["racks_violated"] == ["t-0"]
    assert "1 leadership could go back" in twin["sentence"]


def test_settings_differ_from_broker_to_broker_and_from_their_defaults_and_secrets_stay_hidden() -> None:
    twin = json.loads(ask(a_console(), "/configs.json").body)

    assert twin["sentence"] == "1 setting differs from broker to broker."
    assert twin["between"] == [{"name": "num.io.threads", "values": {"0": "8", "1": "9"}}]
    assert [(row["of"], row["name"], row["value"], row["default"]) for row in twin["rows"]] == [
        ("0", "broker.id", "0", "-1"),
        ("1", "broker.id", "1", "-1"),
        ("0,1", "log.retention.ms", "5", "7"),
        ("1", "num.io.threads", "9", "8"),
        ("0,1", "ssl.key.password", "hidden", ""),
    ]


def test_a_topic_says_the_worst_of_its_partitions() -> None:
    (row,) = json.loads(ask(a_console(), "/topics.json").body)["rows"]

    assert (row["topic"], row["partitions"], row["factor"], row["kind"]) == ("a", 2, 3, "under-replicated")


def test_a_console_without_records_shows_none() -> None:
    console = a_console()
    console._shows_records = False

    refused = ask(console, "/topics/a/records", Accept="application/json")

    assert refused.status == 400
    assert "--no-records" in json.loads(refused.body)["problem"]


def test_what_is_large_is_compressed_for_those_who_read_that_and_events_never_are() -> None:
    console = a_console()

    plain = ask(console, "/")
    pressed = ask(console, "/", **{"Accept-Encoding": "gzip"})

    assert (plain.header("content-encoding"), pressed.header("content-encoding")) == ("", "gzip")
    assert len(pressed.body) < len(plain.body)
    assert b"<h1" in gzip.decompress(pressed.body)


def test_files_are_kept_under_an_address_that_names_their_content_and_pages_never() -> None:
    console = a_console()
    page = ask(console, "/")

    (style,) = re.findall(r'href="(/static/console.css\?v=\w{12})"', page.body.decode())

    assert "immutable" in ask(console, style).header("cache-control")
    assert ask(console, "/static/console.css").header("cache-control") == "no-store"
    assert ask(console, "/static/none.css?v=1").header("cache-control") == "no-store"
    assert page.header("cache-control") == "no-store"


def test_looking_at_a_topic_that_was_deleted_does_not_make_it_again() -> None:
    console = a_console()

    fresh = Console(ClientConfig(bootstrap_servers=(("h", 1),)), TOKEN)

    assert not console._config.allow_auto_create_topics
    assert not fresh.looker._config.allow_auto_create_topics
