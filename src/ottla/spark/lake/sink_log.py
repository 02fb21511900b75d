"""An archive: Parquet below a directory, and the log of Spark's file sink, so that Spark reads what counts.

A batch's entry in the log is made in one step, if it is not there yet. Its first line says where the batch
ends.
"""

import json
import os
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyarrow import fs

from ottla.spark.errors import refuse
from ottla.spark.lake.copying import Reached
from ottla.spark.lake.files import Layout, Written, place_of
from ottla.spark.runtime.checkpoint import SINK_LOG

REACHED = "ottla"
COMPACT_EVERY = 10
"""Every tenth entry repeats all files, as Spark's do and Spark expects."""
_VERSION = "v1"
_COMPACT = ".compact"


class SinkLog:
    """An archive as a table that remembers how far it is."""

    def __init__(self, location: str) -> None:
        self.name = location
        self.layout = Layout(location, has_all_columns=False)
        self._files, root = place_of(location)
        self._root = root
        self._log = f"{root}/{SINK_LOG}"
        self._next = 0

    def begin(self) -> None:
        """Make the log, so that Spark takes the directory for an archive, if still an empty one."""
        self._files.create_dir(self._log, recursive=True)

    def reached(self) -> Reached:
        entries = self._entries()
        self._next = max(entries, default=-1) + 1
        if not entries:
            return {}
        said = self._lines(entries[self._next - 1])
        found: Reached | None = said[0].get(REACHED) if said else None
        return found or self._as_spark_noted(self._next - 1)

    def commit(self, files: Sequence[Written], reached: Reached) -> bool:
        number = self._next
        added = [self._line(one) for one in files]
        is_compact = (number + 1) % COMPACT_EVERY == 0
        lines = [*(self._all_files() if is_compact else ()), *added]
        lines[0] = lines[0] | {REACHED: reached}
        text = "\n".join([_VERSION, *map(_compact_json, lines)])
        if not self._make(f"{number}{_COMPACT if is_compact else ''}", text):
            return False
        if is_compact:
            self._forget_before(number - COMPACT_EVERY)
        return True

    def _line(self, one: Written) -> dict[str, Any]:
        location = (
            self.name if "://" in self.name or self.name.startswith("file:") else Path(self._root).as_uri()
        )
        return {
            "path": f"{location.rstrip('/')}/{one.path}",
            "size": one.size,
            "isDir": False,
            "modificationTime": time.time_ns() // 1_000_000,
            "blockReplication": 1,
            "blockSize": 33554432,
            "action": "add",
        }

    def _entries(self) -> dict[int, str]:
        """The names of the log's files by number."""
        selector = fs.FileSelector(self._log, allow_not_found=True)
        names = [info.base_name for info in self._files.get_file_info(selector)]
        numbers = {name: name.removesuffix(_COMPACT) for name in names}
        return {int(number): name for name, number in numbers.items() if number.isdecimal()}

    def _lines(self, name: str) -> list[dict[str, Any]]:
        with self._files.open_input_stream(f"{self._log}/{name}") as stream:
            return [json.loads(line) for line in stream.readall().decode().splitlines()[1:]]

    def _all_files(self) -> list[dict[str, Any]]:
        entries = self._entries()
        compact = max((number for number, name in entries.items() if name.endswith(_COMPACT)), default=0)
        lines = [
            line for number in sorted(entries) if number >= compact for line in self._lines(entries[number])
        ]
        return [{key: value for key, value in line.items() if key != REACHED} for line in lines]

    def _make(self, name: str, text: str) -> bool:
        """Make a file of the log as a whole; false where there is one."""
        path, draft = f"{self._log}/{name}", f"{self._log}/.{name}.{uuid.uuid4().hex}.tmp"
        if not isinstance(self._files, fs.LocalFileSystem):
            if self._files.get_file_info(path).type != fs.FileType.NotFound:
                return False
            with self._files.open_output_stream(path) as stream:
                stream.write(text.encode())
            return True
        with Path(draft).open("w", encoding="utf-8") as stream_:
            stream_.write(text)
            stream_.flush()
            os.fsync(stream_.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        finally:
            Path(draft).unlink()
        return True

    def _forget_before(self, number: int) -> None:
        """Remove what a newer entry repeats, but for what somebody may be reading now."""
        for old, name in self._entries().items():
            if old < number:
                self._files.delete_file(f"{self._log}/{name}")

    def _as_spark_noted(self, number: int) -> Reached:
        """Where a batch ended that Spark's own sink wrote, by the checkpoint of its query."""
        path = f"{self._root}/_checkpoint/offsets/{number}"
        if self._files.get_file_info(path).type == fs.FileType.NotFound:
            why = (
                "it holds an archive of Spark's sink whose _checkpoint is missing: nobody knows how far it is"
            )
            raise refuse("to", self.name, why, "archive to another directory (--to)")
        with self._files.open_input_stream(path) as stream:
            found: Reached = json.loads(stream.readall().decode().splitlines()[2])
            return found


def _compact_json(line: dict[str, Any]) -> str:
    return json.dumps(line, separators=(",", ":"))
