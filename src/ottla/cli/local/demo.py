"""``ottla up --demo``: the pipeline shown beside a cluster, in the background of the same terminal."""

import importlib.util
import shlex
import sys
from pathlib import Path

from ottla.cli.local.output import tell
from ottla.launch.processes import ALONE, GuardedProcess

LOG_NAME = "demo.log"
SETUP_LOG_NAME = "demo-setup.log"
MARK = "pipeline: "
NEEDED = ("pyspark", "pyarrow", "numba")
NO_NEWS = "set-up: .venv is up to date"


def start_demo(bootstrap_servers: str, data_dir: Path, setup: str = "") -> "Demo | None":
    """Start the demo, after the command that installs Spark; if Spark is missing, say so and return None."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing and not setup:
        tell(f"{MARK}not shown: {', '.join(missing)} not installed; pip install 'ottla[spark]'")
        return None
    return Demo(bootstrap_servers, data_dir, shlex.split(setup))


class Demo:
    """``ottla pipeline demo`` in a process of its own; what it says is told line by line, when asked for."""

    def __init__(self, bootstrap_servers: str, data_dir: Path, setup: list[str]) -> None:
        self._data_dir = data_dir
        command = [sys.executable, *ALONE, "-m", "ottla.cli.main", "pipeline", "demo"]
        self._command = [*command, "--bootstrap-server", bootstrap_servers]
        self._is_over = False
        self._is_setting_up = bool(setup)
        if setup:
            self._begin(setup, SETUP_LOG_NAME)
        else:
            self._begin(self._command, LOG_NAME)

    def _begin(self, command: list[str], log_name: str) -> None:
        self._log = self._data_dir / log_name
        self._process = GuardedProcess(command, output=self._log)
        self._told_bytes = 0

    def tell_news(self) -> None:
        """Whole lines that have come since the last time; at the end, how it ended."""
        if self._is_over:
            return
        code = self._process.exit_code()
        self._tell_lines(is_ended=code is not None)
        if code is None:
            return
        self._process.stop()
        if self._is_setting_up and code == 0:
            self._is_setting_up = False
            self._begin(self._command, LOG_NAME)
            return
        self._is_over = True
        what = "set-up" if self._is_setting_up else "it"
        ending = "that was `ottla pipeline demo`" if code == 0 else f"{what} ended with exit code {code}"
        tell(f"{MARK}{ending}; the cluster goes on running")

    def _tell_lines(self, *, is_ended: bool) -> None:
        with self._log.open("rb") as log:
            log.seek(self._told_bytes)
            news = log.read()
        whole = news if is_ended else news[: news.rfind(b"\n") + 1]
        self._told_bytes += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            if line != NO_NEWS:
                tell(f"{MARK}{line}")

    def stop(self) -> None:
        """End it, in whatever it is doing."""
        self._process.stop()
