"""Acts are shown, then done as shown or not at all; what is closed stays closed; each leaves a line."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlencode

import pytest

from ottla.console.app import ACTS, Console
from ottla.insight.picture import Picture
from ottla.model.ids import TopicPartition
from ottla.wire.apis.elect_leaders import PartitionResult
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


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.path)
def test_every_act_is_closed_unless_it_is_opened_by_name(act: Any) -> None:
    others = tuple({one.name for one in ACTS} - {act.name})
    scene = Scene(LED_BY_OTHERS, others)

    shown = scene.shown(act.path)
    refused = scene.done(act.path, "x.y")

    assert (shown["is_open"], refused.status) == (False, 403)
    assert json.loads(refused.body)["problem"].endswith(f"--allow {act.name}.")
    assert scene.client.asked == [] or scene.client.times("read_picture") == len(scene.client.asked)
    assert scene.lines[0].endswith("refused: closed")


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.path)
def test_no_act_is_done_by_a_form_that_is_not_ours(act: Any) -> None:
    scene = Scene(LED_BY_OTHERS, (act.name,))

    assert scene.done(act.path, "x.y", csrf="wrong").status == 403
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
