"""``ottla up --demo``: the pipeline shown beside a cluster, in the background of the same terminal."""

import importlib.util
import sys
from pathlib import Path

from ottla.cli.local.telling import tell
from ottla.launch.processes import ALONE, GuardedProcess

LOG_NAME = "demo.log"
MARK = "pipeline: "
NEEDED = ("pyspark", "pyarrow", "numba")


def start_demo(bootstrap_servers: str, data_dir: Path) -> "Demo | None":
    """The demo under way; or one line about what it lacks, and the cluster is all there is."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        tell(f"{MARK}not shown: {', '.join(missing)} not installed; pip install 'ottla[spark]'")
        return None
    return Demo(bootstrap_servers, data_dir)


class Demo:
    """``ottla pipeline demo`` in a process of its own; what it says is told line by line, when asked for."""

    def __init__(self, bootstrap_servers: str, data_dir: Path) -> None:
        self._log = data_dir / LOG_NAME
        command = [sys.executable, *ALONE, "-m", "ottla.cli.main", "pipeline", "demo"]
        self._process = GuardedProcess([*command, "--bootstrap-server", bootstrap_servers], output=self._log)
        self._told_bytes = 0
        self._is_over = False

    def tell_news(self) -> None:
        """Whole lines that have come since the last time; at the end, how it ended."""
        if self._is_over:
            return
        code = self._process.exit_code()
        with self._log.open("rb") as log:
            log.seek(self._told_bytes)
            news = log.read()
        whole = news if code is not None else news[: news.rfind(b"\n") + 1]
        self._told_bytes += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            tell(f"{MARK}{line}")
        if code is not None:
            self._is_over = True
            ending = "that was `ottla pipeline demo`" if code == 0 else f"it ended with exit code {code}"
            tell(f"{MARK}{ending}; the cluster goes on running")

    def stop(self) -> None:
        """End it, in whatever it is doing."""
        self._process.stop()
