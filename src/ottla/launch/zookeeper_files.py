"""What an embedded ZooKeeper server reads and writes: its jars, its configuration, its log."""

import importlib.util
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ottla.launch.refusal import LaunchRefused

CONFIG_NAME = "ottla-zookeeper.properties"
LOGGING_NAME = "ottla-logging.properties"
LOG_NAME = "zookeeper.log"
PRINTED_NAME = "zookeeper.out"
LOCK_NAME = "ottla-zookeeper.lock"

# Only what the server needs of Spark's three hundred jars: a short class path starts faster. Netty is there
# for TLS; snappy and metrics-core are classes that ZooKeeper names in its own signatures.
JARS = (
    "zookeeper-[0-9]*.jar",
    "zookeeper-jute-*.jar",
    "slf4j-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "commons-cli-*.jar",
    "netty-buffer-*.jar",
    "netty-codec-[0-9]*.jar",
    "netty-codec-base-*.jar",
    "netty-common-*.jar",
    "netty-handler-[0-9]*.jar",
    "netty-resolver-[0-9]*.jar",
    "netty-transport-[0-9]*.jar",
    "netty-transport-classes-epoll-*.jar",
    "netty-transport-native-epoll-*-linux-x86_64.jar",
    "netty-transport-native-epoll-*-linux-aarch_64.jar",
    "netty-transport-native-unix-common-*.jar",
)
_NEEDED = JARS[:8]

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


def zookeeper_jars() -> list[Path]:
    """The jars of the ZooKeeper server inside the installed pyspark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise LaunchRefused(
            "the embedded ZooKeeper comes with pyspark, which is not installed; "
            "run pip install 'ottla[spark]', or use a ZooKeeper of your own"
        )
    directory = Path(spec.origin).parent / "jars"
    missing = [pattern for pattern in _NEEDED if not any(directory.glob(pattern))]
    if missing:
        raise LaunchRefused(
            f"{directory} lacks {missing[0]}, so the pyspark there is damaged or too old; "
            "run pip install --force-reinstall 'ottla[spark]'"
        )
    return [jar for pattern in JARS for jar in sorted(directory.glob(pattern))]


def zookeeper_version(jars: list[Path]) -> str:
    """The version of the server, out of its jar's name."""
    return jars[0].stem.removeprefix("zookeeper-")


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
