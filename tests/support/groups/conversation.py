"""One conversation of a group's members with a coordinator, noted in words that two brokers share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from ottla.wire.apis import heartbeat as hb
from ottla.wire.apis import join_group as jg
from ottla.wire.apis import leave_group as lg
from ottla.wire.apis import message_classes
from ottla.wire.apis import offset_commit as oc
from ottla.wire.apis import offset_fetch as of
from ottla.wire.apis import sync_group as sg
from ottla.wire.compiler.layout import fields_of
from ottla.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    encode_blob,
)
from ottla.wire.headers import decode_response
from ottla.wire.keys import ApiKey
from support.wire.client import WireClient

SESSION_MS = 20_000
REBALANCE_MS = 20_000
TOPIC, OTHER_TOPIC = "orders", "invoices"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ANSWER_SECONDS_MAX = 60
IDENTITIES = ("member_id", "partition_index", "name", "group_id")


def subscription(*topics: str, user_data: bytes | None = None) -> bytes:
    """What a member says that it wants to read."""
    return encode_blob(ConsumerProtocolSubscription(topics=topics, user_data=user_data), 1)


def share(topic: str, *partitions: int) -> bytes:
    """What a member is to read."""
    rows = [TopicPartitions(topic=topic, partitions=partitions)]
    return encode_blob(ConsumerProtocolAssignment(assigned_partitions=rows), 1)


@dataclass(slots=True)
class Talk:
    """Given to a case: speaks as any number of members, and notes every answer."""

    address: str
    group: str
    answers: list[tuple[str, Any]] = field(default_factory=list)
    _clients: dict[str, WireClient] = field(default_factory=dict)
    _parked: dict[str, list[tuple[Any, int]]] = field(default_factory=dict)
    _uuids: dict[str, str] = field(default_factory=dict)

    def ask(self, message: Any, version: int, by: str = "a") -> Any:
        """Send and note the answer."""
        self.send(message, version, by)
        return self.take(by)

    def send(self, message: Any, version: int, by: str = "a") -> None:
        """Send a request whose answer comes later."""
        self._client(by).send(message, version)
        self._parked.setdefault(by, []).append((message, version))

    def take(self, by: str = "a") -> Any:
        """The answer to the oldest open request of one connection, noted."""
        message, version = self._parked[by].pop(0)
        frame = self._client(by).read_frame()
        asked = f"{by}: {type(message).__name__} v{version}"
        if frame is None:
            self.answers.append((asked, "hung up"))
            self._clients.pop(by).close()
            return None
        response = decode_response(message_classes(ApiKey(message.spec.api_key))[1], version, frame)[1]
        self.answers.append((asked, self._plain(response, version)))
        return response

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _client(self, by: str) -> WireClient:
        if by not in self._clients:
            self._clients[by] = WireClient(self.address, ANSWER_SECONDS_MAX)
        return self._clients[by]

    def _plain(self, value: Any, version: int) -> Any:
        match value:
            case msgspec.Struct():
                return {
                    each.name: self._plain(getattr(value, each.name), version)
                    for each in fields_of(type(value))
                    if each.is_in(version)
                }
            case list():
                return self._in_order([self._plain(each, version) for each in value])
            case tuple():
                return [self._plain(each, version) for each in value]
            case str():
                return UUID.sub(self._named, value)
            case bytes() | memoryview():
                return bytes(value).hex()
            case _:
                return value

    @staticmethod
    def _in_order(rows: list[Any]) -> list[Any]:
        """No broker promises an order; what is listed counts."""
        if not all(isinstance(row, dict) for row in rows):
            return rows
        return sorted(rows, key=lambda row: [str(row.get(name)) for name in IDENTITIES])

    def _named(self, found: re.Match[str]) -> str:
        return self._uuids.setdefault(found[0], f"#{len(self._uuids) + 1}")

    # -- the usual requests ------------------------------------------------------------------

    def join_request(self, member_id: str = "", **fields: Any) -> jg.JoinGroupRequest:
        given: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": [protocol("range", subscription(TOPIC))],
            **fields,
        }
        return jg.JoinGroupRequest(**given)

    def join(self, member_id: str = "", version: int = 9, by: str = "a", **fields: Any) -> Any:
        return self.ask(self.join_request(member_id, **fields), version, by)

    def sync_request(
        self, member_id: str, generation: int, shares: dict[str, bytes] | None = None, **fields: Any
    ) -> sg.SyncGroupRequest:
        given: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": generation,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [
                sg.SyncGroupRequestAssignment(member_id=to, assignment=blob)
                for to, blob in (shares or {}).items()
            ],
            **fields,
        }
        return sg.SyncGroupRequest(**given)

    def sync(
        self,
        member_id: str,
        generation: int,
        shares: dict[str, bytes] | None = None,
        version: int = 5,
        by: str = "a",
        **fields: Any,
    ) -> Any:
        return self.ask(self.sync_request(member_id, generation, shares, **fields), version, by)

    def heartbeat(
        self, member_id: str, generation: int, version: int = 4, by: str = "a", **fields: Any
    ) -> Any:
        given: dict[str, Any] = {
            "group_id": self.group,
            "member_id": member_id,
            "generation_id": generation,
            **fields,
        }
        return self.ask(hb.HeartbeatRequest(**given), version, by)

    def leave(self, *member_ids: str, version: int = 5, instances: tuple[str, ...] = ()) -> Any:
        if version < 3:
            return self.ask(lg.LeaveGroupRequest(group_id=self.group, member_id=member_ids[0]), version)
        leaving = [lg.MemberIdentity(member_id=member_id) for member_id in member_ids]
        leaving += [lg.MemberIdentity(member_id="", group_instance_id=instance) for instance in instances]
        return self.ask(lg.LeaveGroupRequest(group_id=self.group, members=leaving), version)

    def commit(
        self,
        offsets: dict[tuple[str, int], int],
        member_id: str = "",
        generation: int = -1,
        version: int = 9,
        metadata: str | None = "",
        **fields: Any,
    ) -> Any:
        return self.ask(self.commit_request(offsets, member_id, generation, metadata, **fields), version)

    def commit_request(
        self,
        offsets: dict[tuple[str, int], int],
        member_id: str,
        generation: int,
        metadata: str | None = "",
        **fields: Any,
    ) -> oc.OffsetCommitRequest:
        topics: dict[str, list[oc.OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            row = oc.OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
            topics.setdefault(topic, []).append(row)
        given: dict[str, Any] = {
            "group_id": self.group,
            "generation_id_or_member_epoch": generation,
            "member_id": member_id,
            "topics": [
                oc.OffsetCommitRequestTopic(name=name, partitions=rows) for name, rows in topics.items()
            ],
            **fields,
        }
        return oc.OffsetCommitRequest(**given)

    def fetch(
        self,
        topics: dict[str, tuple[int, ...]] | None,
        version: int = 9,
        group: str | None = None,
        **fields: Any,
    ) -> Any:
        return self.ask(self.fetch_request(topics, version, group, **fields), version)

    def fetch_request(
        self,
        topics: dict[str, tuple[int, ...]] | None,
        version: int = 9,
        group: str | None = None,
        **fields: Any,
    ) -> of.OffsetFetchRequest:
        name = self.group if group is None else group
        if version < 8:
            rows = (
                None
                if topics is None
                else [of.OffsetFetchRequestTopic(name=t, partition_indexes=p) for t, p in topics.items()]
            )
            return of.OffsetFetchRequest(group_id=name, topics=rows, **fields)
        asked = of.OffsetFetchRequestGroup(
            group_id=name,
            topics=None
            if topics is None
            else [of.OffsetFetchRequestTopics(name=t, partition_indexes=p) for t, p in topics.items()],
        )
        return of.OffsetFetchRequest(groups=[asked], **fields)

    # -- groups that are a given -------------------------------------------------------------

    def first_member(self, version: int = 9, **fields: Any) -> Any:
        """A member that has joined an empty group; its answer."""
        answer = self.join(version=version, **fields)
        if answer.error_code == 79:
            answer = self.join(answer.member_id, version=version, **fields)
        return answer

    def stable(self, version: int = 9, **fields: Any) -> Any:
        """A stable group of one; its join's answer."""
        joined = self.first_member(version, **fields)
        extra: dict[str, Any] = (
            {"group_instance_id": fields["group_instance_id"]} if "group_instance_id" in fields else {}
        )
        said: dict[str, Any] = {"protocol_type": joined.protocol_type, "protocol_name": joined.protocol_name}
        if joined.protocol_type is None:
            said = {"protocol_type": "consumer"}
        self.sync(
            joined.member_id,
            joined.generation_id,
            {joined.member_id: share(TOPIC, 0, 1, 2)},
            **{**said, **extra},
        )
        return joined

    def pair(self, **second: Any) -> tuple[Any, Any]:
        """A stable group of two, by connections ``a`` and ``b``."""
        one = self.stable()
        given = self.join(by="b", **second)
        self.send(self.join_request(given.member_id, **second), 9, "b")
        self.heartbeat_until(one.member_id, one.generation_id, 27)
        a = self.join(one.member_id)
        b = self.take("b")
        shares = {a.member_id: share(TOPIC, 0, 1), b.member_id: share(TOPIC, 2)}
        self.send(self.sync_request(b.member_id, b.generation_id), 5, "b")
        self.sync(a.member_id, a.generation_id, shares)
        self.take("b")
        return a, b

    def heartbeat_until(self, member_id: str, generation: int, code: int, **fields: Any) -> None:
        """Heartbeats of one member until this answer; only the last is noted."""
        while True:
            noted = len(self.answers)
            if self.heartbeat(member_id, generation, by="watch", **fields).error_code == code:
                return
            del self.answers[noted:]


def protocol(name: str, metadata: bytes = b"") -> jg.JoinGroupRequestProtocol:
    return jg.JoinGroupRequestProtocol(name=name, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Case:
    """A named conversation."""

    name: str
    run: Callable[[Talk], None]


class Cases(list[Case]):
    """A list that functions enter by decoration; a function may enter once for each of several values."""

    def add(self, function: Callable[[Talk], None]) -> Callable[[Talk], None]:
        self.append(Case(function.__name__.replace("_", "-"), function))
        return function

    def add_for(self, *values: Any) -> Callable[[Callable[[Talk, Any], None]], Callable[[Talk, Any], None]]:
        def enter(function: Callable[[Talk, Any], None]) -> Callable[[Talk, Any], None]:
            name = function.__name__.replace("_", "-")
            for value in values:
                self.append(Case(f"{name}-{value}", partial(_run_with, function, value)))
            return function

        return enter


def _run_with(function: Callable[[Talk, Any], None], value: Any, talk: Talk) -> None:
    function(talk, value)


def answers_of(case: Case, address: str) -> list[tuple[str, Any]]:
    """What one broker answers in one case."""
    talk = Talk(address, f"g-{case.name}")
    try:
        case.run(talk)
    finally:
        talk.close()
    return talk.answers
