"""One life lived by two logs, Ottla's and Kafka's own: after each step both must say the same.

The oracle is Kafka's ``UnifiedLog`` with a clock that we set; ours is a log in a directory of its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crc32c import crc32c

from ottla.config.log import LogConfig
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import read_header
from ottla.records.validate import Origin, Refused
from ottla.storage.cleanup.compaction import Compaction, CompactionResult
from ottla.storage.cleanup.plan import plan_compaction
from ottla.storage.cleanup.retention import apply_retention
from ottla.storage.cleanup.swap import swap_in
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.disk.port import OsDisk
from ottla.storage.log.log import Log
from support.logs.builders import found_by_time
from support.processes.java_harness import java_harness
from support.wire.records_oracle import Description, described_by_java

State = dict[str, Any]
PARTITION = TopicPartition("orders", 0)
# Kafka syncs in the background, we do so off the loop; the point up to which is nobody's promise.
UNCOMPARED = {"recovery_point"}
TIME_ENTRY_BYTES = 12
SNAPSHOT_CRC_ENDS_AT, SNAPSHOT_HEAD_BYTES, PRODUCER_BYTES = 6, 10, 46


class KafkaLog:
    """The oracle on a partition directory."""

    def __init__(self, directory: Path, config: dict[str, str], name: str = str(PARTITION)) -> None:
        self.directory = directory / name
        self.directory.mkdir(parents=True, exist_ok=True)
        self._config = config

    def call(self, method: str, **arguments: Any) -> State:
        request = json.dumps({"dir": str(self.directory), **arguments}).encode()
        answer: State = json.loads(java_harness("LogOracle").call(method, request))
        return {name: value for name, value in answer.items() if name not in UNCOMPARED}

    def open(self, now_ms: int, *, clean: bool, log_start_offset: int = 0, recovery_point: int = 0) -> State:
        return self.call(
            "open",
            now_ms=now_ms,
            clean=clean,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            config=self._config,
        )


class OttlaLog:
    """Our log, asked and described in the oracle's words."""

    def __init__(
        self, directory: Path, config: dict[str, str], partition: TopicPartition = PARTITION
    ) -> None:
        self.root = directory
        self.directory = directory / str(partition)
        self._partition = partition
        self._config = log_config(config)
        self._dirs: LogDirs | None = None

    @classmethod
    def describing(cls, dirs: LogDirs, name: str) -> OttlaLog:
        """One of the logs that are open already."""
        topic, _, number = name.rpartition("-")
        found = cls(Path(next(iter(dirs.directories))), {}, TopicPartition(topic, int(number)))
        found._dirs = dirs
        return found

    def open(self, now_ms: int) -> State:
        dirs = LogDirs(OsDisk(), [str(self.root)])
        self._dirs = dirs
        dirs.open(self._config, {}, now_ms)
        assert not dirs.offline, f"a directory went offline: {dirs.offline}"
        dirs.create(self._partition, self._config, now_ms=now_ms)
        return self.state()

    @property
    def dirs(self) -> LogDirs:
        assert self._dirs is not None, "the log is open"
        return self._dirs

    @property
    def log(self) -> Log:
        log = self.dirs.get(self._partition)
        assert log is not None, "the log is open"
        return log

    def append(self, records: bytes, epoch: int, now_ms: int, origin: Origin = Origin.CLIENT) -> State:
        view = bytearray(records)
        done = self.log.append_as_leader(
            view, read_header(view, 0), leader_epoch=epoch, now_ms=now_ms, origin=origin
        )
        if isinstance(done, Refused):
            return {"error": done.error}
        return {"first_offset": done.base_offset, "last_offset": done.last_offset}

    def append_as_follower(self, records: bytes, now_ms: int) -> State:
        done = self.log.append_as_follower(records, now_ms=now_ms)
        if isinstance(done, Refused):
            return {"error": done.error}
        return {"first_offset": done.base_offset, "last_offset": done.last_offset}

    def close(self) -> None:
        self.dirs.close()
        self._dirs = None

    def abandon(self) -> None:
        """What kill -9 leaves: all that was written, nothing that was still in memory."""
        self.log.release()
        self._dirs = None

    def sync_rolled(self) -> None:
        """What a broker does in the background after a segment was rolled."""
        rolled = self.log.home.directory.rolled
        if self._partition in rolled:
            self.log.flush()

    def state(self) -> State:
        log = self.log
        producers = [
            {
                "producer_id": producer_id,
                "epoch": producer.epoch,
                "coordinator_epoch": producer.coordinator_epoch,
                "first_offset_of_transaction": producer.txn_first_offset,
                "last_timestamp": producer.last_timestamp,
                "batches": [
                    [batch.first_sequence, batch.last_sequence, batch.last_offset, batch.timestamp]
                    for batch in producer.batches
                ],
            }
            for producer_id, producer in sorted(log.producers.state.producers.items())
        ]
        return {
            "log_start_offset": log.log_start_offset,
            "end_offset": log.end_offset,
            "high_watermark": log.high_watermark,
            "last_stable_offset": log.last_stable_offset,
            "epochs": [list(entry) for entry in log.epochs.entries()],
            "segments": [[segment.base_offset, segment.size] for segment in log.segments],
            "aborted": [
                [entry.producer_id, entry.first_offset, entry.last_offset]
                for segment in log.segments
                for entry in segment.aborted
            ],
            "producers": producers,
        }


class TwinLogs:
    """Both logs; every step is done to both and what they say is compared at once."""

    def __init__(self, directory: Path, now_ms: int = 1_000, **config: str) -> None:
        self.settings = {name.replace("_", "."): value for name, value in config.items()}
        self.ours = OttlaLog(directory / "ours", self.settings)
        self.theirs = KafkaLog(directory / "theirs", self.settings)
        self.ours.root.mkdir(parents=True, exist_ok=True)
        self.now_ms = now_ms
        self._was_killed = False
        self._was_recompressed = False
        self._end_before = 0
        self._same({}, self.ours.open(now_ms), self.theirs.open(now_ms, clean=True))

    def append(self, records: bytes | bytearray, epoch: int = 0, *, origin: Origin = Origin.CLIENT) -> State:
        """Append as leader; what came of it."""
        data = bytes(records)
        self._end_before = self.ours.log.end_offset
        done = self.ours.append(data, epoch, self.now_ms, origin)
        answer = self._call(
            "append", records=data.hex(), epoch=epoch, coordinator=origin is Origin.COORDINATOR
        )
        self._same(done, self.ours.state(), answer)
        return done

    def replicate(self, records: bytes | bytearray) -> State:
        """Append as follower."""
        data = bytes(records)
        done = self.ours.append_as_follower(data, self.now_ms)
        self._same(done, self.ours.state(), self._call("append", records=data.hex(), follower=True))
        return done

    def assign_epoch(self, epoch: int) -> None:
        offset = self.ours.log.end_offset
        self.ours.log.epochs.assign(epoch, offset)
        self._same({}, self.ours.state(), self._call("assign_epoch", epoch=epoch, offset=offset))

    def roll(self) -> None:
        self.ours.log.roll(self.now_ms)
        self._same({}, self.ours.state(), self._call("roll"))

    def truncate(self, offset: int, *, forgetful: bool = False) -> None:
        """Cut both. A forgetful Kafka was asked for no time since it loaded the log: it loses the largest."""
        self.ours.log.truncate_to(offset)
        self.ours.log.set_high_watermark(self.ours.log.high_watermark)
        self._same({}, self.ours.state(), self._call("truncate", offset=offset, forgetful=forgetful))

    def truncate_fully(self, offset: int) -> None:
        self.ours.log.truncate_fully_and_start_at(offset)
        self.ours.log.set_high_watermark(offset)
        self._same({}, self.ours.state(), self._call("truncate_fully", offset=offset))

    def set_high_watermark(self, offset: int) -> None:
        self.ours.log.set_high_watermark(offset)
        self._same({}, self.ours.state(), self._call("high_watermark", offset=offset))

    def raise_start(self, offset: int) -> None:
        """DeleteRecords, up to the high watermark at most."""
        offset = min(offset, self.ours.log.high_watermark)
        self.ours.log.raise_log_start_offset(offset)
        self._same({}, self.ours.state(), self._call("raise_start", offset=offset))

    def delete_old(self) -> None:
        """Retention by time, size and log start."""
        plans = apply_retention(self.ours.log, self.now_ms)
        done = {"deleted": sum(plan.segment_count for plan in plans)}
        self._same(done, self.ours.state(), self._call("delete_old"))

    def clean(self) -> bool:
        """Compact the dirty part once, with ``min.cleanable.dirty.ratio`` 0; False if there is none."""
        log = self.ours.log
        plan = plan_compaction(log, self.now_ms)
        if plan is None:
            return False
        before = log.first_dirty_offset
        result = Compaction(log.home.directory, plan)()
        assert isinstance(result, CompactionResult), result
        assert swap_in(log, result), "the log did not change under the run"
        answer = self._call("clean", **({"first_dirty": before} if before else {}))
        self._was_recompressed = True
        done = {"first_dirty": log.first_dirty_offset, **self.ours.state()}
        for name in ("cleanable_bytes", "total_bytes"):
            answer.pop(name)
        assert _without_sizes(done) == _without_sizes(answer), difference(done, answer)
        self.compare_records()
        return True

    def compare_records(self) -> None:
        """Batch by batch and record by record; only compressed bytes may differ."""
        for file in sorted(self.theirs.directory.glob("*.log")):
            ours, theirs = _content_of(self.ours.directory / file.name), _content_of(file)
            if ours and ours[-1]["count"] == 0 and len(ours) == len(theirs) + 1:
                # We keep the last batch below what may be cleaned, if only its frame: no gap at the end.
                ours.pop()
            assert ours == theirs, f"{file.name}:\nours {ours}\nKafka's {theirs}"

    def find_time(self, timestamp: int) -> None:
        found = found_by_time(self.ours.log, timestamp)
        said = {
            "found_timestamp": -1 if found is None else found.timestamp,
            "found_offset": -1 if found is None else found.offset,
        }
        self._same(said, self.ours.state(), self._call("find_time", timestamp=timestamp))

    def restart(self, *, clean: bool) -> None:
        """Stop and start again, or be killed and start again; the high watermark comes from a checkpoint."""
        self._was_killed = self._was_killed or not clean
        high_watermark, start = self.ours.log.high_watermark, self.ours.log.log_start_offset
        if clean:
            self.ours.close()
        else:
            self.ours.dirs.checkpoints.write_high_watermarks()
            self.ours.dirs.checkpoints.write_recovery_points()
            self.ours.abandon()
        recovery_points = (self.ours.root / "recovery-point-offset-checkpoint").read_text().split()
        self._call("close" if clean else "abandon")
        self.theirs.open(
            self.now_ms, clean=clean, log_start_offset=start, recovery_point=int(recovery_points[-1])
        )
        said = self.ours.open(self.now_ms)
        self._same({}, said, self._call("high_watermark", offset=high_watermark))

    def close_with(self, differing: set[str]) -> None:
        """Stop both cleanly; afterwards exactly these files differ."""
        self.ours.close()
        self._call("close")
        ours, theirs = files_of(self.ours.directory), files_of(self.theirs.directory)
        found = {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
        assert found == differing, f"{sorted(found)} differ"

    def close(self, *, same_bytes: bool = True) -> None:
        """Stop both cleanly; afterwards their directories hold the same.

        Kafka drops producer snapshots at or below the log's start whenever it loads the log, we only at need.
        """
        start = self.ours.log.log_start_offset
        self.ours.close()
        self._call("close")
        if not same_bytes:
            self.compare_records()
            return
        ours, theirs = files_of(self.ours.directory, start), files_of(self.theirs.directory, start)
        assert sorted(ours) == sorted(theirs), f"files ours {sorted(ours)} theirs {sorted(theirs)}"
        for name, content in theirs.items():
            if self._was_killed and name.endswith(".timeindex"):
                # Kafka's recovery adds an entry for the end of each segment, ours only when it is closed.
                assert _times(ours[name]) <= _times(content), f"{name} has entries that Kafka's has not"
            else:
                assert ours[name] == content, f"{name} differs"

    def _call(self, method: str, **arguments: Any) -> State:
        return self.theirs.call(method, now_ms=self.now_ms, **arguments)

    def _same(self, done: State, state: State, answer: State) -> None:
        said = {**done, **state}
        self.ours.sync_rolled()
        if self._was_killed:
            self._forget_as_kafka(said, answer)
        self._recognise_as_kafka(said, answer)
        if self._was_recompressed:
            said, answer = _without_sizes(said), _without_sizes(answer)
        assert said == answer, difference(said, answer)

    def _forget_as_kafka(self, said: State, answer: State) -> None:
        """After a crash Kafka knows one batch of each producer, we all that the scan showed (up to five).

        Kafka takes the time of that batch from its producer's last sign of life, maybe a marker; we know
        the batch's own.
        """
        for ours, theirs in zip(said["producers"], answer["producers"], strict=True):
            known = len(theirs["batches"])
            ours["batches"] = ours["batches"][-known:] if known else []
            for batch, restored in zip(ours["batches"], theirs["batches"], strict=True):
                if restored[-1] == theirs["last_timestamp"]:
                    batch[-1] = restored[-1]
        if said["last_stable_offset"] < answer["last_stable_offset"]:
            # Kafka forgets transactions that are over but whose marker is above the high watermark.
            still_open = [each["first_offset_of_transaction"] for each in said["producers"]]
            assert said["last_stable_offset"] not in still_open, difference(said, answer)
            said["last_stable_offset"] = answer["last_stable_offset"]

    def _recognise_as_kafka(self, said: State, answer: State) -> None:
        """Kafka knows a producer's last five batches, after a crash the last; we find all that are there.

        So we recognise a batch sent again where Kafka calls its sequence out of order."""
        if answer.get("error") == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and "error" not in said:
            assert said.pop("last_offset") < self._end_before, "a duplicate"
            assert said.pop("first_offset") < self._end_before, "a duplicate"
            answer.pop("error")


def _without_sizes(state: State) -> State:
    return {**state, "segments": [base_offset for base_offset, _ in state["segments"]]}


def _content_of(file: Path) -> list[Description]:
    """What a segment holds, by Kafka's reading; how well it is compressed is left out."""
    batches = described_by_java(file.read_bytes())
    for batch in batches:
        if batch["codec"] != "none":
            del batch["size"], batch["crc"]
    return batches


def difference(ours: State, theirs: State) -> str:
    """What differs, in words for a failed test."""
    names = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    return "; ".join(f"{name}: ours {ours.get(name)} Kafka's {theirs.get(name)}" for name in names)


def files_of(directory: Path, log_start_offset: int = 0) -> dict[str, bytes]:
    """The files of a stopped log, but empty and outdated ones and the topic id."""
    return {
        file.name: _in_order(file)
        for file in directory.iterdir()
        if file.suffix != ".deleted"
        and file.name != "partition.metadata"
        and file.stat().st_size
        and not (file.suffix == ".snapshot" and int(file.stem) <= log_start_offset)
    }


def _times(content: bytes) -> set[bytes]:
    return {content[at : at + TIME_ENTRY_BYTES] for at in range(0, len(content), TIME_ENTRY_BYTES)}


def _in_order(file: Path) -> bytes:
    """A file's bytes; the producers of a snapshot, whose order is that of a Java map, by their ids."""
    content = file.read_bytes()
    if file.suffix != ".snapshot":
        return content
    head, producers = content[:SNAPSHOT_HEAD_BYTES], content[SNAPSHOT_HEAD_BYTES:]
    assert crc32c(content[SNAPSHOT_CRC_ENDS_AT:]) == int.from_bytes(content[2:SNAPSHOT_CRC_ENDS_AT]), file
    entries = [producers[at : at + PRODUCER_BYTES] for at in range(0, len(producers), PRODUCER_BYTES)]
    return head[:2] + head[SNAPSHOT_CRC_ENDS_AT:] + b"".join(sorted(entries))


def log_config(settings: dict[str, str]) -> LogConfig:
    """Our settings of Kafka's names and texts."""
    types = {name: type(value) for name, value in _defaults().items()}
    values: dict[str, Any] = {}
    for name, text in settings.items():
        field = name.replace(".", "_")
        values[field] = frozenset(text.split(",")) if field == "cleanup_policy" else types[field](text)
    return LogConfig(**values)


def _defaults() -> dict[str, Any]:
    return {name: getattr(LogConfig(), name) for name in LogConfig.__slots__}
