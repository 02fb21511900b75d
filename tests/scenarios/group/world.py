"""A group shard, its log and a few consumers, for scenarios and properties."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from ottla.config.group import GroupConfig
from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.members import Protocol
from ottla.coordinator.group.requests import Commit, Join
from ottla.coordinator.group.stored.committed import CommittedOffset
from ottla.coordinator.shard import Answer, Append, Effect, Moment, StoredRecord
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.heartbeat import HeartbeatResponse
from ottla.wire.apis.join_group import JoinGroupResponse
from ottla.wire.apis.leave_group import LeaveGroupResponse, MemberIdentity
from ottla.wire.apis.offset_commit import OffsetCommitResponse
from ottla.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.wire.consumer_protocol import ConsumerProtocolSubscription, encode_blob

GROUP = "readers"


@dataclass
class Consumer:
    """A client as it knows itself."""

    name: str
    member_id: str = ""
    instance_id: str | None = None
    generation: int = -1
    leader: str = ""
    roster: list[str] = field(default_factory=list)
    protocol: str | None = None


class GroupWorld:
    """Time stands still until it is advanced; writes are committed at once unless they are held."""

    def __init__(self, config: GroupConfig | None = None) -> None:
        self.config = config or GroupConfig()
        self.now_ms = 1_000
        self.log: list[StoredRecord] = []
        self.held: list[Append] | None = None
        self.fail_next: ErrorCode = ErrorCode.NONE
        self.consumers: dict[str, Consumer] = {}
        self.asked: dict[int, Consumer] = {}
        self.said: list[str] = []
        self._tokens = itertools.count(1)
        self._uuids = itertools.count(1)
        self.shard = self._new_shard()

    def _new_shard(self) -> GroupShard:
        return GroupShard(self.config, lambda: f"#{next(self._uuids)}")

    @property
    def now(self) -> Moment:
        return Moment(self.now_ms, self.now_ms)

    # -- the scenario language ---------------------------------------------------------------

    def run(self, command: str) -> list[str]:
        verb, *words = command.split()
        names = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        self.said = []
        getattr(self, f"do_{verb}")(*names, **options)
        return self.said

    def do_config(self, **options: str) -> None:
        """Settings as of now; those of a shard that is at work change when it moves."""
        self.config = GroupConfig(**{name: int(value) for name, value in options.items()})
        if not self.log:
            self.shard = self._new_shard()

    def do_join(self, name: str, **options: str) -> None:
        who = self.consumers.setdefault(name, Consumer(name))
        if "id" in options:
            who.member_id = "" if options["id"] == "none" else options["id"]
        who.instance_id = options.get("instance", who.instance_id)
        version = int(options.get("version", "9"))
        topics = tuple(options.get("topics", "orders").split(","))
        metadata = encode_blob(ConsumerProtocolSubscription(topics=topics), 3)
        protocols = tuple(Protocol(p, metadata) for p in options.get("protocols", "range").split(",") if p)
        request = Join(
            group_id=options.get("group", GROUP),
            member_id=who.member_id,
            group_instance_id=who.instance_id,
            client_id=name,
            client_host="/127.0.0.1",
            rebalance_timeout_ms=int(options.get("rebalance", "60000")),
            session_timeout_ms=int(options.get("session", "10000")),
            protocol_type=options.get("type", "consumer"),
            protocols=protocols,
            must_know_its_id=version >= 4 and who.instance_id is None,
            may_skip_assignment=version >= 9,
        )
        self._perform(self.shard.join(self._token(who), request, self.now))

    def do_sync(self, name: str, **options: str) -> None:
        who = self.consumers[name]
        shares = [part.split(":") for part in options.get("assign", "").split(";") if part]
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=int(options.get("generation", who.generation)),
            member_id=options.get("id", who.member_id),
            group_instance_id=who.instance_id,
            protocol_type=options.get("type"),
            protocol_name=options.get("protocol"),
            assignments=[
                SyncGroupRequestAssignment(member_id=self.consumers[to].member_id, assignment=share.encode())
                for to, share in shares
            ],
        )
        self._perform(self.shard.sync(self._token(who), request, self.now))

    def do_heartbeat(self, name: str, **options: str) -> None:
        who = self.consumers[name]
        generation = int(options.get("generation", who.generation))
        self._perform(
            self.shard.heartbeat(
                self._token(who),
                GROUP,
                options.get("id", who.member_id),
                who.instance_id,
                generation,
                self.now,
            )
        )

    def do_leave(self, name: str, **options: str) -> None:
        who = self.consumers[name]
        member_id = "" if options.get("by") == "instance" else options.get("id", who.member_id)
        instance_id = options.get("instance", who.instance_id)
        identity = MemberIdentity(member_id=member_id, group_instance_id=instance_id)
        self._perform(self.shard.leave(self._token(who), GROUP, [identity], self.now))

    def do_commit(self, name: str, partition: str, **options: str) -> None:
        who = self.consumers.setdefault(name, Consumer(name))
        generation = int(options.get("generation", who.generation))
        expires_ms = self.now_ms + int(options["expires"]) if "expires" in options else -1
        metadata = options.get("metadata", "")
        offset = CommittedOffset(int(options["offset"]), -1, metadata, self.now_ms, expires_ms)
        request = Commit(GROUP, who.member_id, who.instance_id, generation, {_tp(partition): offset}, {})
        self._perform(self.shard.commit(self._token(who), request, self.now))

    def do_fetch(self, partition: str, *flags: str) -> None:
        answer = self.shard.fetch(GROUP, [_tp(partition)], require_stable="stable" in flags)
        row = answer.topics[0].partitions[0]
        outcome = f"committed={row.committed_offset}" if not row.error_code else _name(row.error_code)
        self.said.append(f"{partition} {outcome}")

    def do_delete(self) -> None:
        error, effects = self.shard.delete_group(GROUP, self.now)
        self._perform(effects)
        self.said.append(f"delete {error.name}")

    def do_expire(self) -> None:
        self._perform(self.shard.expire_offsets(self.now))

    def do_advance(self, ms: str) -> None:
        """Let time pass, stopping at every deadline on the way."""
        until = self.now_ms + int(ms)
        while (deadline := self.shard.next_deadline_ms()) is not None and deadline <= until:
            self.now_ms = max(self.now_ms, deadline)
            self._perform(self.shard.tick(self.now))
        self.now_ms = until

    def do_hold(self) -> None:
        if self.held is None:
            self.held = []

    def do_release(self, error: str = "NONE") -> None:
        held, self.held = self.held or [], None
        for write in held:
            self._commit(write, ErrorCode[error])

    def do_fail(self, error: str) -> None:
        self.fail_next = ErrorCode[error]

    def do_failover(self) -> None:
        """The shard moves to another broker: what is in the log is all that is left."""
        self._perform(self.shard.unload(self.now))
        if self.held is not None:
            self.held = []
        self.shard = self._new_shard()
        self.shard.apply(self.log)
        for _ in self.shard.restore():
            pass
        self._perform(self.shard.loaded(self.now))

    def do_show(self) -> None:
        group = self.shard.groups.get(GROUP)
        if group is None:
            self.said.append("no group")
            return
        members = ",".join(group.members)
        self.said.append(
            f"group {group.state.value} generation={group.generation} leader={group.leader} members={members}"
        )

    # -- carrying out ------------------------------------------------------------------------

    def _token(self, who: Consumer) -> int:
        token = next(self._tokens)
        self.asked[token] = who
        return token

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Answer():
                    self._hear(self.asked.pop(effect.token), effect.response)
                case Append() if self.held is not None:
                    self.held.append(effect)
                case Append():
                    error, self.fail_next = self.fail_next, ErrorCode.NONE
                    self._commit(effect, error)

    def _commit(self, write: Append, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.log.extend(write.records)
            self.said.append(f"log {write.reason}")
        self._perform(self.shard.appended(write.ticket, error, self.now))

    def _hear(self, who: Consumer, response: object) -> None:
        match response:
            case JoinGroupResponse():
                self._hear_join(who, response)
            case SyncGroupResponse():
                share = bytes(response.assignment).decode() or "nothing"
                outcome = f"assigned {share}" if response.error_code == 0 else _name(response.error_code)
                self.said.append(f"{who.name} sync {outcome}")
            case HeartbeatResponse():
                self.said.append(f"{who.name} heartbeat {_name(response.error_code)}")
            case LeaveGroupResponse():
                code = response.error_code or response.members[0].error_code
                self.said.append(f"{who.name} leave {_name(code)}")
            case OffsetCommitResponse():
                self.said.append(f"{who.name} commit {_name(response.topics[0].partitions[0].error_code)}")
            case _:
                raise AssertionError(f"no client knows {response!r}")

    def _hear_join(self, who: Consumer, response: JoinGroupResponse) -> None:
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            who.member_id = response.member_id
        if response.error_code != 0:
            self.said.append(
                f"{who.name} join {_name(response.error_code)} id={response.member_id or 'none'}"
            )
            return
        who.member_id, who.generation = response.member_id, response.generation_id
        who.leader, who.protocol = response.leader, response.protocol_name
        who.roster = [member.member_id for member in response.members]
        skip = " skip-assignment" if response.skip_assignment else ""
        roster = f" members={','.join(who.roster)}" if who.roster else ""
        self.said.append(
            f"{who.name} joined id={who.member_id} generation={who.generation} "
            f"protocol={who.protocol} leader={who.leader}{roster}{skip}"
        )


def _tp(text: str) -> TopicPartition:
    topic, partition = text.rsplit("-", 1)
    return TopicPartition(topic, int(partition))


def _name(code: int) -> str:
    return ErrorCode(code).name
