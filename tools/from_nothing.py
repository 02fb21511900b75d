"""From nothing to a first record, in a bare Debian root with python3 and venv alone: seconds and megabytes.

    python tools/from_nothing.py                 # pip install of the wheel, `ottla up`, a record
    python tools/from_nothing.py --make-run      # `make run` in a fresh clone, until a record

Needs root, debootstrap and a network; the root is made once (``--root``), and nothing of the clone's .venv is
in it. pip's address and certificates are taken over from this machine's environment.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = "python3-venv,ca-certificates,make,git"
RELEASE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
HOME = "/home/somebody"
START_S_MAX = 600.0
TAKEN_OVER = ("PIP_INDEX_URL", "PIP_CERT", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
RECORD = "echo hello | {ottla} console-producer --topic first"


def main() -> int:
    """Make the root if it is not there, then install, start and write in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("/var/tmp/ottla-bare-root"))
    parser.add_argument("--make-run", action="store_true", help="make run in a clone, not the wheel")
    given = parser.parse_args()
    make_root(given.root)
    home = given.root / HOME.lstrip("/")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    try:
        Bare(given.root, home).run(is_clone=given.make_run)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return 0


def make_root(root: Path) -> None:
    """A minimal Debian, kept for the next time."""
    if (root / "usr/bin/python3").exists():
        return
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        sys.exit("tools/from_nothing.py needs root and debootstrap: apt-get install debootstrap")
    print(f"a bare Debian in {root}", flush=True)
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, root, MIRROR]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)


class Bare:
    """The root, entered with processes and mounts of its own."""

    def __init__(self, root: Path, home: Path) -> None:
        self._root = root
        self._home = home
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        if Path(CERTIFICATES).exists():
            shutil.copy(CERTIFICATES, root / CERTIFICATES.lstrip("/"))

    def run(self, *, is_clone: bool) -> None:
        """Time each step, and tell it."""
        begun = time.monotonic()
        if is_clone:
            subprocess.run(["git", "clone", "--quiet", ROOT, self._home / "clone"], check=True)
            ottla, where, command = "clone/.venv/bin/ottla", f"{HOME}/clone", "make run"
            self._tell(begun, "git clone")
        else:
            self._install(begun)
            ottla, where, command = "venv/bin/ottla", HOME, f"{HOME}/venv/bin/ottla up"
        started = self._start(f"cd {where} && exec {command}")
        try:
            state = self._root / where.lstrip("/") / "ottla-data" / "up.json"
            self._until_there(state, started)
            self._tell(begun, f"{command.rpartition('/')[2]}: ready")
            self._do(f"cd {where} && {RECORD.format(ottla=f'{HOME}/{ottla}')}", started)
            self._tell(begun, "first record")
        finally:
            os.killpg(started.pid, signal.SIGINT)  # Ctrl-C
            started.wait(60)
        print(f"in {HOME}: {size_mb(self._home):.0f} MB")

    def _install(self, begun: float) -> None:
        wheels = self._home / "wheels"
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*map(str, pip), "--wheel-dir", str(wheels), str(ROOT)], check=True)
        [wheel] = wheels.glob("ottla-*.whl")
        self._do(f"python3 -m venv {HOME}/venv")
        self._tell(begun, "wheel and venv")
        pip_inside, there = f"{HOME}/venv/bin/pip --quiet", f"{HOME}/wheels"
        self._do(f"{pip_inside} download --only-binary :all: --dest {there} {there}/{wheel.name}")
        print(f"fetched: {size_mb(wheels):.1f} MB in {len(list(wheels.iterdir()))} wheels", flush=True)
        self._do(f"{pip_inside} install --no-index --find-links {there} {there}/{wheel.name}")
        self._tell(begun, "pip install")

    def _tell(self, begun: float, what: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {what}", flush=True)

    def _command(self, line: str) -> list[str]:
        inside = f"mount -t proc proc {self._root}/proc && mount --rbind /dev {self._root}/dev"
        entered = f"exec chroot {self._root} sh -c {quoted(line)}"
        namespaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
        return [*namespaces, "sh", "-c", f"{inside} && {entered}"]

    def _environ(self) -> dict[str, str]:
        taken = {name: os.environ[name] for name in TAKEN_OVER if name in os.environ}
        return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": HOME, "LC_ALL": "C.UTF-8", **taken}

    def _do(self, line: str, running: "subprocess.Popen[bytes] | None" = None) -> None:
        """One command to its end; beside a running one, in its namespaces."""
        command = self._command(line)
        if running is not None:
            command = ["chroot", str(self._root), "sh", "-c", line]
        subprocess.run(command, env=self._environ(), check=True)

    def _start(self, line: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self._command(line), env=self._environ(), stdout=subprocess.DEVNULL, start_new_session=True
        )

    def _until_there(self, state: Path, running: "subprocess.Popen[bytes]") -> None:
        give_up = time.monotonic() + START_S_MAX
        while not state.exists():
            if running.poll() is not None or time.monotonic() > give_up:
                sys.exit("the cluster did not start")
            time.sleep(0.02)


def quoted(line: str) -> str:
    """For another shell."""
    return "'" + line.replace("'", "'\\''") + "'"


def size_mb(path: Path) -> float:
    """All files below."""
    return sum(each.lstat().st_size for each in path.rglob("*") if not each.is_dir()) / 1e6


if __name__ == "__main__":
    sys.exit(main())
