"""The log beside bare system calls: the same bytes appended and read, in one run, side by side.

Bars: append of 1 MiB batches within 1.5 times and of 16 KiB batches within 3 times a bare ``os.write``;
sequential read within 1.3 times a bare ``os.pread``; 2,000 clean partitions opened within a second; an idle
partition costs at most 4 KiB of memory and no open file; 10,000 logs are made in 4 s, closed in 3 s and
opened in 5 s of processor time, and take at most 40 MB.

    python bench/storage.py [--mib 64] [--partitions 2000] [--many 10000] [--directory /tmp] [--no-history]
"""

import argparse
import gc
import os
import shutil
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bars import STORAGE
from history import record

from ottla.config.log import LogConfig
from ottla.model.ids import TopicId, TopicPartition
from ottla.records.batch import stamp
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.records.validate import Refused, parse_produced
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.disk.port import OsDisk
from ottla.storage.log.log import Log

"""Seconds of the processor and MB, for 10,000 logs."""
MIB = 1024 * 1024
ROUNDS = 7


def a_batch(size: int) -> bytearray:
    """About ``size`` bytes of records of 1 KiB."""
    return build_batch(
        [Record(b"%08d" % at, bytes(1000), timestamp=1_000 + at) for at in range(size // 1024)]
    )


def a_log(root: str) -> tuple[LogDirs, Log]:
    config = LogConfig(segment_bytes=MIB * 1024, max_message_bytes=4 * MIB)
    dirs = LogDirs(OsDisk(), [root])
    dirs.lock()
    dirs.open(config, {}, 0)
    return dirs, dirs.create(TopicPartition("bench", 0), config, now_ms=0)


def ours_appending(root: str, batch: bytearray, count: int) -> float:
    """Seconds to parse, judge, stamp and write ``count`` batches, as a leader does."""
    _, log = a_log(root)
    view = memoryview(batch)
    started = time.process_time()
    for _ in range(count):
        stamp(view, 0, 0, -1)
        header = parse_produced(view, 9)
        assert not isinstance(header, Refused)
        log.append_as_leader(view, header, leader_epoch=3, now_ms=1_000)
    return time.process_time() - started


def bare_appending(root: str, batch: bytearray, count: int) -> float:
    fd = os.open(f"{root}/bare", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    started = time.process_time()
    for _ in range(count):
        os.write(fd, batch)
    elapsed = time.process_time() - started
    os.close(fd)
    return elapsed


def ours_reading(root: str, batch: bytearray, count: int) -> float:
    """Seconds to read the log from its start, a MiB at a time, as a consumer that catches up."""
    _, log = a_log(root)
    header = parse_produced(batch, 9)
    assert not isinstance(header, Refused)
    for _ in range(count):
        stamp(batch, 0, 0, -1)
        log.append_as_leader(batch, header, leader_epoch=3, now_ms=1_000)
    records = header.record_count
    end = log.end_offset
    offset = 0
    started = time.process_time()
    while offset < end:
        found = log.read(offset, 2 * MIB, end)
        assert found is not None
        offset += len(found.read()) // len(batch) * records
    return time.process_time() - started


def bare_reading(root: str, batch: bytearray, count: int) -> float:
    fd = os.open(f"{root}/bare", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    for _ in range(count):
        os.write(fd, batch)
    size, position = count * len(batch), 0
    step = 2 * MIB // len(batch) * len(batch)
    started = time.process_time()
    while position < size:
        position += len(os.pread(fd, step, position))
    elapsed = time.process_time() - started
    os.close(fd)
    return elapsed


def side_by_side(
    directory: str,
    ours: Callable[[str, bytearray, int], float],
    bare: Callable[[str, bytearray, int], float],
    size: int,
    mib: int,
) -> tuple[float, float]:
    """Medians of both, in turn and in fresh directories; microseconds of processor time a batch.

    Processor time, user and kernel, because the disk and the neighbours are the same for both.
    """
    batch = a_batch(size)
    count = max(8, mib * MIB // len(batch))
    times: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(ROUNDS):
        for name, run in (("bare", bare), ("ours", ours)):
            root = tempfile.mkdtemp(dir=directory)
            try:
                times[name].append(run(root, bytearray(batch), count) / count * 1e6)
            finally:
                shutil.rmtree(root)
    return median(times["ours"]), median(times["bare"])


def opening(directory: str, partitions: int) -> tuple[float, float, int]:
    """Seconds (of the processor) to open clean partitions, bytes each costs in memory, and open files."""
    root = tempfile.mkdtemp(dir=directory)
    try:
        config = LogConfig()
        dirs = LogDirs(OsDisk(), [root])
        dirs.lock()
        dirs.open(config, {}, 0)
        for at in range(partitions):
            log = dirs.create(
                TopicPartition("bench", at), config, topic_id=TopicId(bytes(15) + b"\1"), now_ms=0
            )
            for _ in range(3):
                batch = a_batch(1024)
                header = parse_produced(batch, 9)
                assert not isinstance(header, Refused)
                log.append_as_leader(batch, header, leader_epoch=1, now_ms=1)
        dirs.close()
        del dirs, log
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        fds = len(os.listdir("/proc/self/fd"))
        again = LogDirs(OsDisk(), [root])
        again.lock()
        again.open(config, {}, 0)
        gc.collect()
        cost = (tracemalloc.get_traced_memory()[0] - before) / partitions
        tracemalloc.stop()
        open_files = len(os.listdir("/proc/self/fd")) - fds - 1
        again.close()
        seconds = []
        for _ in range(3):
            fresh = LogDirs(OsDisk(), [root])
            fresh.lock()
            started = time.process_time()
            fresh.open(config, {}, 0)
            seconds.append(time.process_time() - started)
            fresh.close()
        return min(seconds), cost, open_files
    finally:
        shutil.rmtree(root)


def many(directory: str, partitions: int) -> dict[str, float]:
    """What a broker with many new partitions, each led once, costs: processor seconds and MB."""
    root = tempfile.mkdtemp(dir=directory)
    try:
        spent = {}
        dirs = LogDirs(OsDisk(), [root])
        dirs.lock()
        dirs.open(LogConfig(), {}, 0)
        spent["create"] = _seconds(lambda: _create_many(dirs, partitions))
        spent["close"] = _seconds(dirs.close)
        again = LogDirs(OsDisk(), [root])
        again.lock()
        spent["open"] = _seconds(lambda: again.open(LogConfig(), {}, 0))
        assert len(again.logs) == partitions
        again.close()
        tracemalloc.start()
        third = LogDirs(OsDisk(), [root])
        third.lock()
        third.open(LogConfig(), {}, 0)
        spent["memory"] = tracemalloc.get_traced_memory()[0] / 1e6
        tracemalloc.stop()
        return spent
    finally:
        shutil.rmtree(root)


def _create_many(dirs: LogDirs, partitions: int) -> None:
    for at in range(partitions):
        log = dirs.create(
            TopicPartition("bench", at), LogConfig(), topic_id=TopicId(bytes(15) + b"\1"), now_ms=0
        )
        log.epochs.assign(0, 0)


def _seconds(work: Callable[[], None]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def warm_up(directory: str, mib: int) -> None:
    """A page that was never used costs far more than a write: touch them first."""
    path = Path(directory) / f"ottla-bench-{os.getpid()}"
    with path.open("wb", buffering=0) as file:
        for _ in range(mib):
            file.write(bytes(MIB))
    path.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description="The log beside bare system calls.")
    parser.add_argument("--mib", type=int, default=64, help="bytes of a round, in MiB")
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--many", type=int, default=10_000, help="logs to make, close and open")
    parser.add_argument("--directory", default=tempfile.gettempdir())
    parser.add_argument("--no-history", action="store_true")
    options = parser.parse_args()
    warm_up(options.directory, 3 * options.mib)
    cases = [
        ("append 1 MiB", ours_appending, bare_appending, MIB),
        ("append 16 KiB", ours_appending, bare_appending, 16 * 1024),
        ("read, 1 MiB batches", ours_reading, bare_reading, MIB),
        ("read, 16 KiB batches", ours_reading, bare_reading, 16 * 1024),
    ]
    numbers: dict[str, float] = {}
    missed = []
    for name, ours, bare, size in cases:
        mine, theirs = side_by_side(options.directory, ours, bare, size, options.mib)
        ratio = mine / theirs
        numbers[name] = round(ratio, 3)
        missed += [] if STORAGE[name].is_met(ratio) else [name]
        bar = STORAGE[name].number
        print(f"{name:22} ours {mine:9.1f} µs   bare {theirs:9.1f} µs   {ratio:5.2f} x   bar {bar} x")
    seconds, cost, open_files = opening(options.directory, options.partitions)
    numbers |= {"open seconds": round(seconds, 3), "idle bytes": round(cost), "idle open files": open_files}
    open_max, idle_max = STORAGE["open seconds"].number, STORAGE["idle bytes"].number
    print(f"open {options.partitions} clean partitions: {seconds:.3f} s (bar {open_max} s)")
    print(f"idle partition: {cost:.0f} B (bar {idle_max} B), open files for all: {open_files} (bar 0)")
    spent = many(options.directory, options.many)
    many_max = {name: STORAGE[f"10000 logs, {name}"].number for name in spent}
    numbers |= {f"{options.many} logs, {name}": round(value, 2) for name, value in spent.items()}
    said = ", ".join(f"{name} {value:.2f} (bar {many_max[name]})" for name, value in spent.items())
    print(f"{options.many} logs, processor seconds and MB: {said}")
    missed += [f"{name} many" for name in spent if spent[name] > many_max[name] * options.many / 10_000]
    missed += ["open"] if seconds > open_max * options.partitions / 2000 else []
    missed += ["idle memory"] if cost > idle_max else []
    missed += ["idle files"] if open_files > 0 else []
    if not options.no_history:
        record("storage", numbers)
    if missed:
        print("missed: " + ", ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
