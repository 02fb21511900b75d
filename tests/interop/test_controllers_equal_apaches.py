"""The same questions to an Apache and to an Ottla controller: the same answers, but for texts and new ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.differential.controller_questions import QUESTIONS
from support.groups.two_clusters import two_clusters
from support.wire.client import WireClient

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

MAY_DIFFER = {"error_message", "topic_id", "configs"}


def plain(value: Any) -> Any:
    """An answer without what may differ, lists in an order of their own: neither controller promises one."""
    match value:
        case msgspec.Struct():
            fields = [name for name in value.__struct_fields__ if name not in MAY_DIFFER]
            return {name: plain(getattr(value, name)) for name in fields}
        case list():
            return sorted((plain(each) for each in value), key=repr)
        case _:
            return value


def asked(address: str, request: Any, version: int) -> Any:
    with WireClient(address) as client:
        return plain(client.ask(request, version))


def test_a_controller_answers_what_an_apache_controller_answers(jars: object, tmp_path: Path) -> None:
    different = []
    with two_clusters(tmp_path) as clusters:
        for number, (request, version) in enumerate(QUESTIONS):
            theirs, ours = (asked(broker.address, request, version) for broker in clusters.both)
            if theirs != ours:
                different.append(f"{number} {request} v{version}:\nApache {theirs}\nOttla  {ours}"[:2_000])

    assert len(QUESTIONS) > 120
    assert not different, "\n".join(different)
