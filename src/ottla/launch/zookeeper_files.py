"""What an embedded ZooKeeper server reads and writes: its configuration, its log."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CONFIG_NAME = "ottla-zookeeper.properties"
LOGGING_NAME = "ottla-logging.properties"
LOG_NAME = "zookeeper.log"
PRINTED_NAME = "zookeeper.out"
LOCK_NAME = "ottla-zookeeper.lock"

_LOGGING = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}} %m%n
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""

_GAVE_UP = "exiting abnormally"
_DATA_FILES = "org.apache.zookeeper.server.persistence."
_NOT_DAMAGE = ("No space left on device", "Permission denied", "Read-only file system", "Too many open files")
_ENTRY = re.compile(r"^\d{4}-\d\d-\d\dT")
_THROWN = re.compile(r"^(?:Caused by: )?([\w.$]+(?:Exception|Error))(?:: (.*))?$")


def write_files(data_dir: Path, settings: Mapping[str, str]) -> tuple[Path, Path]:
    """Write configuration and logging set-up into the data directory; returns their paths."""
    config, logging = data_dir / CONFIG_NAME, data_dir / LOGGING_NAME
    lines = [f"{name}={_escaped(value)}\n" for name, value in settings.items()]
    config.write_text("".join(lines), encoding="utf-8")
    logging.write_text(_LOGGING.format(log=_escaped(str(data_dir / LOG_NAME))), encoding="utf-8")
    return config, logging


@dataclass(frozen=True, slots=True)
class FatalError:
    """The exception that ended a server, out of its log."""

    cause: str
    data_is_damaged: bool
    port_in_use: bool


def fatal_error(log: Path, after: int) -> FatalError | None:
    """What the server wrote, behind a position in its log, when it gave up; None where it wrote nothing."""
    try:
        with log.open("rb") as file:
            file.seek(after)
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return None
    _, found, tail = text.rpartition(_GAVE_UP)
    if not found:
        return None
    # The stack trace ends where the next entry of the log begins.
    trace = list(itertools.takewhile(lambda line: not _ENTRY.match(line), tail.splitlines()[1:]))
    thrown = [match for line in trace if (match := _THROWN.match(line))]
    if not thrown:
        return None
    name, message = thrown[-1].groups()
    return FatalError(
        cause=message or name.rpartition(".")[2],
        data_is_damaged=_blames_the_data(message or "", trace),
        port_in_use=name == "java.net.BindException",
    )


def _blames_the_data(message: str, trace: list[str]) -> bool:
    """Whether reading the data files failed, and not for want of space or permission."""
    at_fault = any(_DATA_FILES in line for line in trace)
    return at_fault and not any(sign in message for sign in _NOT_DAMAGE)


def _escaped(value: str) -> str:
    """A value as Java reads its property files: in Latin-1, with escapes in UTF-16 for all else."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)
