"""Acts are shown, then done as shown or not at all; what is closed stays closed; each leaves a line."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from ottla.client.fetching.offsets import FoundOffset
from ottla.client.producing.batches import Delivery
from ottla.console.app import ACTS, Console
from ottla.console.change.act import Act
from ottla.insight.picture import Picture
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.wire.apis.alter_configs import AlterConfigsResourceResponse
from ottla.wire.apis.alter_partition_reassignments import ReassignablePartitionResponse
from ottla.wire.apis.create_topics import CreatableTopicResult
from ottla.wire.apis.delete_topics import DeletableTopicResult
from ottla.wire.apis.describe_configs import DescribeConfigsResourceResult, DescribeConfigsResult
from ottla.wire.apis.describe_groups import DescribedGroup
from ottla.wire.apis.elect_leaders import PartitionResult
from ottla.wire.apis.offset_fetch import OffsetFetchResponsePartitions
from support.client.asgi import Answered, asked
from support.client.pictures import a_picture
from support.client.standing import TOKEN, SaidClient, a_standing_console

GET = {"Host": "127.0.0.1:8092", "Authorization": f"Bearer {TOKEN.secret}"}
POST = {**GET, "Origin": "http://127.0.0.1:8092", "Sec-Fetch-Site": "same-origin"}
LED_BY_OTHERS = a_picture(
    {
        "a-0": (1, (0, 1), (0, 1)),
        "a-1": (1, (1, 0), (0, 1)),
        "b-0": (1, (2, 1), (1,)),
        "b-1": (1, (7, 1), (1,)),
    }
)


def offsets_at(wanted: dict[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
    """Logs that begin at 10 and end at 100; the record of any time is at 50."""
    return {name: FoundOffset({EARLIEST: 10, LATEST: 100}.get(at, 50), -1, 0) for name, at in wanted.items()}


class Scene:
    """A console over a cluster that stands as the test says."""

    def __init__(self, picture: Picture, allowed: tuple[str, ...] = (), **answers: Any) -> None:
        self.lines: list[str] = []
        self.picture = picture
        self.client = SaidClient(read_picture=lambda **_: self.picture, **answers)
        self.console: Console = a_standing_console(self.client, allowed, self.lines.append)
        self.console.world.saw(picture)
        self.application = self.console.application()

    def shown(self, path: str, **filled: str) -> Any:
        """The preview's twin."""
        query = f"?{urlencode(filled)}" if filled else ""
        return json.loads(self._ask(f"{path}.json{query}", "GET").body)

    def done(self, path: str, mark: str | None, csrf: str = TOKEN.form_token(), **filled: str) -> Answered:
        """The act, as the preview's form sends it."""
        body = urlencode({"csrf": csrf, "mark": mark or "", **filled}).encode()
        return self._ask(f"{path}.json", "POST", body)

    def _ask(self, path: str, method: str, body: bytes = b"") -> Answered:
        return asyncio.run(asked(self.application, path, GET if method == "GET" else POST, method, body))


def an_election(*allowed: str) -> Scene:
    elected = {TopicPartition("a", 0): PartitionResult(partition_id=0)}
    return Scene(LED_BY_OTHERS, allowed, elect_leaders=elected)


def test_an_election_is_shown_with_those_that_cannot_lead_and_why() -> None:
    shown = an_election().shown("/elect")

    assert shown["sentence"] == "1 partition would get the preferred leader back."
    assert [(row["what"], row["now"], row["then"]) for row in shown["changes"]] == [
        ("a-0", "broker 1, epoch 3", "broker 0")
    ]
    assert {row["what"]: row["then"] for row in shown["cannot"]} == {
        "b-0": "broker 2 is not in sync",
        "b-1": "broker 7 is not alive",
    }


def test_what_was_shown_is_done_once_and_leaves_a_line() -> None:
    scene = an_election("elect")
    mark = scene.shown("/elect")["mark"]

    first, second = scene.done("/elect", mark), scene.done("/elect", mark)

    assert json.loads(first.body)["outcomes"] == [{"what": "a-0", "done": True, "said": "leads"}]
    assert (second.status, scene.client.times("elect_leaders")) == (409, 1)
    assert scene.client.asked[2][1] == ([TopicPartition("a", 0)],), "those that were shown, and no others"
    assert "/elect q=: 1 done, 0 refused by the cluster (a-0: leads)" in scene.lines[0]
    assert "done already" in scene.lines[1]


def test_nothing_is_done_when_the_cluster_is_not_as_it_was_shown() -> None:
    scene = an_election("elect")
    mark = scene.shown("/elect")["mark"]
    scene.picture = a_picture({"a-0": (2, (0, 1, 2), (0, 1, 2))})

    refused = scene.done("/elect", mark)

    assert refused.status == 409
    assert "not as it was" in json.loads(refused.body)["problem"]
    assert json.loads(refused.body)["changes"][0]["now"] == "broker 2, epoch 3", "the plan as it is now"
    assert scene.client.times("elect_leaders") == 0


def test_a_mark_holds_for_what_was_filled_in_and_nothing_else() -> None:
    scene = an_election("elect")
    mark = scene.shown("/elect", q="a")["mark"]

    assert scene.done("/elect", mark, q="").status == 409
    assert scene.done("/elect", "x.y", q="a").status == 409
    assert scene.client.times("elect_leaders") == 0


def pasted(topic: str, replicas: list[int]) -> str:
    return json.dumps({"partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]})


def address_of(act: Act) -> str:
    return act.path.format(topic="a")


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.path)
def test_every_act_is_closed_unless_it_is_opened_by_name(act: Act) -> None:
    others = tuple({one.name for one in ACTS} - {act.name})
    scene = Scene(LED_BY_OTHERS, others, list_offsets=offsets_at)

    shown = scene.shown(address_of(act))
    refused = scene.done(address_of(act), "x.y")

    assert (shown["is_open"], refused.status) == (False, 403)
    assert json.loads(refused.body)["problem"].endswith(f"--allow {act.name}.")
    assert {name for name, _, _ in scene.client.asked} <= {"read_picture", "list_offsets"}
    assert scene.lines[0].endswith("refused: closed")


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.path)
def test_no_act_is_done_by_a_form_that_is_not_ours(act: Act) -> None:
    scene = Scene(LED_BY_OTHERS, (act.name,))

    assert scene.done(address_of(act), "x.y", csrf="wrong").status == 403
    assert (scene.client.asked, scene.lines) == ([], [])


def test_a_refusal_of_the_cluster_is_told_as_such() -> None:
    refused = {
        TopicPartition("a", 0): PartitionResult(partition_id=0, error_code=80, error_message="it left")
    }
    scene = Scene(LED_BY_OTHERS, ("elect",), elect_leaders=refused)

    done = json.loads(scene.done("/elect", scene.shown("/elect")["mark"]).body)

    assert done["outcomes"] == [
        {"what": "a-0", "done": False, "said": "PREFERRED_LEADER_NOT_AVAILABLE: it left"}
    ]
    assert "1 refused by the cluster" in done["sentence"]


def test_what_was_typed_stays_on_one_line_of_the_log() -> None:
    scene = an_election("elect")

    scene.done("/elect", "x.y", q="a\nb\x1b[2J")

    assert len(scene.lines) == 1
    assert "\n" not in scene.lines[0]
    assert "\x1b" not in scene.lines[0]


EVEN = a_picture({"a-0": (0, (0,), (0,)), "a-1": (0, (0,), (0,)), "a-2": (1, (1,), (1,))})
"""Three partitions on two of three brokers."""
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_a_reassignment_is_planned_throttled_and_begun() -> None:
    begun = {A0: ReassignablePartitionResponse(partition_index=0)}
    scene = Scene(EVEN, ("reassign",), alter_partition_reassignments=begun, list_partition_reassignments={})
    filled = {"how": "even out"}

    shown = scene.shown("/reassign", **filled)
    done = json.loads(scene.done("/reassign", shown["mark"], **filled).body)

    assert [(row["what"], row["now"], row["then"]) for row in shown["changes"]] == [
        ("a-0", "0", "2 (copies 0 B)")
    ]
    assert done["outcomes"] == [{"what": "a-0", "done": True, "said": "begun"}]
    assert scene.client.asked[-1] == ("alter_partition_reassignments", ({A0: (2,)},), {})


def test_nothing_moves_when_the_throttle_is_refused() -> None:
    refused = [AlterConfigsResourceResponse(error_code=42, error_message="no", resource_name="0")]
    scene = Scene(EVEN, ("reassign",), alter_configs=refused, list_partition_reassignments={})
    filled = {"how": "even out", "throttle": "5"}

    done = json.loads(scene.done("/reassign", scene.shown("/reassign", **filled)["mark"], **filled).body)

    assert done["outcomes"][0]["said"] == "INVALID_REQUEST: no"
    assert scene.client.times("alter_partition_reassignments") == 0


@pytest.mark.parametrize(
    ("filled", "why"),
    [
        ({"how": "drain a broker", "broker": "x"}, "The broker is a number"),
        ({"how": "change the replication factor", "factor": "9"}, "9 replicas need as many live brokers"),
        ({"how": "as in the plan below", "json": "{}"}, "There is no such plan"),
        ({"how": "as in the plan below", "json": pasted("z", [0])}, "There is no partition z-0"),
        ({"how": "as in the plan below", "json": pasted("a", [9])}, "Broker 9 is not alive"),
        ({"how": "even out", "throttle": "0"}, "The throttle is a number"),
        ({"how": "somehow"}, "'somehow' is no way"),
    ],
)
def test_a_reassignment_that_cannot_be_says_why(filled: dict[str, str], why: str) -> None:
    assert (
        Scene(EVEN).shown("/reassign", **filled)["problem"].startswith((why, f"There is no such plan: {why}"))
    )


def a_setting(**changes: Any) -> list[DescribeConfigsResult]:
    row = DescribeConfigsResourceResult(
        **{"name": "retention.ms", "value": "7", "config_source": 5, **changes}
    )
    return [DescribeConfigsResult(configs=[row])]


def test_a_setting_is_checked_by_the_cluster_before_it_is_shown() -> None:
    said = {True: AlterConfigsResourceResponse(), False: AlterConfigsResourceResponse()}
    scene = Scene(
        EVEN,
        ("configs",),
        describe_configs=a_setting(),
        alter_configs=lambda changes, validate_only=False: [said[validate_only]],
    )
    filled = {"kind": "topic", "of": "a", "name": "retention.ms", "value": "9"}

    shown = scene.shown("/configs/change", **filled)
    said[True].error_code = 40
    refused = scene.shown("/configs/change", **filled)
    said[True].error_code = 0
    scene.done("/configs/change", shown["mark"], **filled)

    assert shown["changes"][0]["now"] == "7 (the default)"
    assert refused["problem"].startswith("The cluster would refuse: INVALID_CONFIG")
    assert scene.client.asked[-1][2] == {}, "done, not only checked"


def test_the_value_of_a_secret_is_not_shown() -> None:
    scene = Scene(
        EVEN,
        describe_configs=a_setting(is_sensitive=True, value="s3cret"),
        alter_configs=[AlterConfigsResourceResponse()],
    )

    shown = scene.shown("/configs/change", kind="topic", of="a", name="retention.ms")

    assert "s3cret" not in json.dumps(shown)


def test_a_topic_is_made_as_the_cluster_says_it_would_be() -> None:
    made = [CreatableTopicResult(name="new", num_partitions=4, replication_factor=2)]
    scene = Scene(EVEN, ("topics",), create_topics=lambda *_, **__: made)

    shown = scene.shown("/create-topic", topic="new")
    done = json.loads(scene.done("/create-topic", shown["mark"], topic="new").body)

    assert shown["changes"][0]["then"] == "4 partitions, 2 replicas of each"
    assert done["outcomes"][0]["done"]
    assert "already" in scene.shown("/create-topic", topic="a")["problem"]


def test_a_topic_that_was_made_anew_is_not_deleted_by_the_older_preview() -> None:
    scene = Scene(EVEN, ("topics",), list_offsets=offsets_at, delete_topics=[DeletableTopicResult(name="a")])
    shown = scene.shown("/topics/a/delete")
    scene.picture = replace(EVEN, topics={"a": replace(EVEN.topics["a"], topic_id=b"\1" * 16)})

    assert "about 270 records" in shown["sentence"]
    assert scene.done("/topics/a/delete", shown["mark"]).status == 409
    scene.picture = EVEN
    assert scene.done("/topics/a/delete", scene.shown("/topics/a/delete")["mark"]).status == 200


class SentRecords:
    """In the place of a producer."""

    def __init__(self) -> None:
        self.sent: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    async def send_and_wait(self, *args: Any, **kwargs: Any) -> Delivery:
        self.sent.append((args, kwargs))
        delivery = Delivery()
        delivery.succeed(A1, 7, 0)
        return delivery

    async def close(self) -> None:
        pass


def test_a_record_is_sent_once_as_it_was_typed_and_tells_its_offset() -> None:
    scene, records = Scene(EVEN, ("produce",)), SentRecords()
    scene.client.producer = lambda: records  # type: ignore[attr-defined]
    filled = {"key": "k", "as": "the text below", "value": "one\r\ntwo", "headers": "h: 1", "partition": "1"}

    mark = scene.shown("/topics/a/produce", **filled)["mark"]
    done = json.loads(scene.done("/topics/a/produce", mark, **filled).body)
    again = scene.done("/topics/a/produce", mark, **filled)

    assert done["outcomes"][0]["said"].startswith("offset 7, acknowledged in ")
    assert again.status == 409
    assert records.sent == [(("a", b"one\ntwo"), {"key": b"k", "headers": (("h", b"1"),), "partition": 1})]


@pytest.mark.parametrize(
    ("filled", "why"),
    [
        ({"as": "nothing (a tombstone)"}, "needs a key"),
        ({"value": "x", "partition": "9"}, "from 0 to 2"),
        ({"value": "x", "headers": "none"}, "name: value"),
    ],
)
def test_a_record_that_cannot_be_sent_says_why(filled: dict[str, str], why: str) -> None:
    assert why in Scene(EVEN).shown("/topics/a/produce", **filled)["problem"]


def a_group(state: str = "Empty", **answers: Any) -> Scene:
    held = {
        A0: OffsetFetchResponsePartitions(committed_offset=40),
        A1: OffsetFetchResponsePartitions(committed_offset=99),
    }
    return Scene(
        EVEN,
        ("groups",),
        describe_group=lambda _: DescribedGroup(group_state=state),
        list_group_offsets=held,
        list_offsets=offsets_at,
        **answers,
    )


@pytest.mark.parametrize(
    ("to", "value", "then"),
    [
        ("the start", "", ["10", "10"]),
        ("the end", "", ["the end", "the end"]),
        ("an offset", "5", ["10", "10"]),
        ("so many on (or back: -5)", "-5", ["35", "94"]),
        ("so many on (or back: -5)", "9", ["49", "100"]),
        ("a time", "2026-11-18T14:02", ["50", "50"]),
    ],
)
def test_a_groups_offsets_are_shown_where_they_would_go(to: str, value: str, then: list[str]) -> None:
    shown = a_group().shown("/groups/offsets", group="g", to=to, value=value)

    assert [row["now"] for row in shown["changes"]] == ["40", "99"]
    assert [row["then"] for row in shown["changes"]] == then


def test_a_group_with_members_is_left_alone() -> None:
    shown = a_group("Stable").shown("/groups/offsets", group="g", to="the start")

    assert "running members" in shown["problem"]


def test_offsets_are_refused_when_the_group_has_moved_on_and_the_end_is_that_of_the_doing() -> None:
    scene = a_group(alter_group_offsets={A0: 0, A1: 0})
    filled = {"group": "g", "to": "the end"}
    mark = scene.shown("/groups/offsets", **filled)["mark"]

    assert scene.done("/groups/offsets", mark, **filled).status == 200
    assert scene.client.asked[-1] == ("alter_group_offsets", ("g", {A0: 100, A1: 100}), {})

    mark = scene.shown("/groups/offsets", **filled)["mark"]
    scene.client.answers["list_group_offsets"][A0].committed_offset = 41
    assert scene.done("/groups/offsets", mark, **filled).status == 409
