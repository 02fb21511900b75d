"""The jars of Apache's ZooKeeper server: those inside pyspark, or fetched once from Maven Central.

Ottla ships no jars. Where pyspark is installed, its jars hold a ZooKeeper server; elsewhere the few that the
server needs are fetched when it is first asked for, checked against the hashes below, and kept.
"""

import hashlib
import importlib.util
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ottla.launch.refusal import LaunchRefused

MIRROR = "https://repo.maven.apache.org/maven2"
MIRROR_VARIABLE = "OTTLA_MAVEN_MIRROR"
CACHE_VARIABLE = "OTTLA_CACHE"
FETCH_SECONDS_MAX = 60.0

# Only what the server needs of Spark's three hundred jars: a short class path starts faster. Netty is there
# for TLS; snappy and metrics-core are classes that ZooKeeper names in its own signatures.
PATTERNS = (
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
_NEEDED = PATTERNS[:8]


@dataclass(frozen=True, slots=True)
class Jar:
    """One file of Maven Central, known by its hash."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.jar"

    @property
    def path(self) -> str:
        return f"{self.group}/{self.name}/{self.version}/{self.file_name}"


_UNIX = "netty-transport-native-unix-common"
# Group, version; then name and SHA-256 of each.
_PINNED = {
    ("org/apache/zookeeper", "3.9.5"): {
        "zookeeper": "936d025db1a85f085edea25048c3f5b3de5fc29329c371a10925e3b78b0b38a0",
        "zookeeper-jute": "abcbc7f9d6c493daa118da6fa3061a201e2c521217526e8535adfb56b629e52a",
    },
    ("org/slf4j", "2.0.17"): {
        "slf4j-api": "7b751d952061954d5abfed7181c1f645d336091b679891591d63329c622eb832",
    },
    ("org/apache/logging/log4j", "2.25.4"): {
        "log4j-api": "c4b642a7f047275215de117e0e3847eb2c7711d84a0aa7433e7b3c096daf341d",
        "log4j-core": "10fee2c0485d54fa44ee75d314f6295508f7b932281873db61a91b88073200e6",
        "log4j-slf4j2-impl": "dd897abc5eb3a6d965426c7937b92dd43e67c82d9819bea5d19f311516c68be3",
    },
    ("io/dropwizard/metrics", "4.2.37"): {
        "metrics-core": "3c70d19049d10f474ab803706b9c0677bcf5fd9e1afeb4f6c496f62e38b27678",
    },
    ("org/xerial/snappy", "1.1.10.8"): {
        "snappy-java": "50485d06037fea3d6e40c968386feeca6338cc9872e25549593ff3eb352cefcc",
    },
    ("commons-cli", "1.11.0"): {
        "commons-cli": "8f7f8605d68e15bf32db61ec94eac6fdafc51b1bdbe1e0e0802b57d23f387792",
    },
    ("io/netty", "4.2.13.Final"): {
        "netty-buffer": "39e9ab9ecaff178898a5eb37568096f1efd4f768a7bd162e0cde3eefa19137d5",
        "netty-codec": "ead6e40832fac34be975b66d21bbdac005f6e83f643406b146655777fa767d2a",
        "netty-codec-base": "a0407d1e9b77e9807aabf367e06602475faab567bfcb8e07ff5bd22c24cd923e",
        "netty-common": "cccffbdd68586b5473c67d6ac37145625e7abbfae304e7a512616576b0187697",
        "netty-handler": "50efc30aeca2ef21311f2502389e500bfc168c311edb1ae04a2db4d6bb5d7f7f",
        "netty-resolver": "2cd68d6a746aeb2ec92923fa168d250526d7ad3dbe1877e7bcbe6e8acdb2c193",
        "netty-transport": "d9b2200bfe6e47c2dfa2f0952df6fbdfd42bf58bdd9007e9ac17c789274388c5",
        "netty-transport-classes-epoll": "2ed9cf6ca8bee3ae80501938e5fa0b7c20947d704222a774a60ae65d38e0285e",
        _UNIX: "052b8429276ac96bd1f1067ce963b4e57c627ca331071f4df2e63f759234f6b1",
    },
}
FETCHED = tuple(
    Jar(group, name, version, sha256)
    for (group, version), files in _PINNED.items()
    for name, sha256 in files.items()
)
FETCHED_MB = 10


def zookeeper_jars() -> list[Path]:
    """The jars of the server, fetched if they are nowhere on this machine."""
    return jars_here() or _fetched(fetched_dir())


def jars_here() -> list[Path]:
    """The jars of the server that are on this machine already; an empty list where they are not."""
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        return _inside_pyspark(Path(spec.origin).parent / "jars")
    files = [fetched_dir() / jar.file_name for jar in FETCHED]
    return files if all(file.is_file() for file in files) else []


def zookeeper_version(jars: list[Path]) -> str:
    """The version of the server, out of its jar's name."""
    return jars[0].stem.removeprefix("zookeeper-")


def fetched_dir() -> Path:
    """Where fetched jars are kept."""
    named = os.environ.get(CACHE_VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (Path(named) if named else cache / "ottla") / f"zookeeper-{FETCHED[0].version}"


def _inside_pyspark(directory: Path) -> list[Path]:
    missing = [pattern for pattern in _NEEDED if not any(directory.glob(pattern))]
    if missing:
        raise LaunchRefused(
            f"{directory} lacks {missing[0]}, so the pyspark there is damaged or too old; "
            "run pip install --force-reinstall 'ottla[spark]'"
        )
    return [jar for pattern in PATTERNS for jar in sorted(directory.glob(pattern))]


def _fetched(directory: Path) -> list[Path]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for jar in FETCHED:
            if not (directory / jar.file_name).is_file():
                _keep(jar, _fetch(jar), directory)
    except OSError as error:
        raise LaunchRefused(
            f"cannot keep ZooKeeper's jars in {directory} ({error.strerror}); name another directory in"
            f" {CACHE_VARIABLE}"
        ) from error
    return [directory / jar.file_name for jar in FETCHED]


def _fetch(jar: Jar) -> bytes:
    import urllib.request
    from http.client import HTTPException

    address = f"{os.environ.get(MIRROR_VARIABLE) or MIRROR}/{jar.path}"
    remedy = (
        f"check the network or the proxy, name a mirror of Maven Central in {MIRROR_VARIABLE}, or run"
        " pip install 'ottla[spark]', which brings the jars"
    )
    try:
        with urllib.request.urlopen(address, timeout=FETCH_SECONDS_MAX) as answer:
            content: bytes = answer.read()
    except (OSError, ValueError, HTTPException) as error:
        raise LaunchRefused(f"Apache ZooKeeper cannot be fetched: {address}: {error}; {remedy}") from None
    if hashlib.sha256(content).hexdigest() != jar.sha256:
        raise LaunchRefused(
            f"Apache ZooKeeper cannot be fetched: what {address} gave is not that file; {remedy}"
        )
    return content


def _keep(jar: Jar, content: bytes, directory: Path) -> None:
    """Whole or not at all, whoever else does the same."""
    with tempfile.NamedTemporaryFile(dir=directory, prefix=jar.file_name, delete=False) as file:
        file.write(content)
    Path(file.name).replace(directory / jar.file_name)
