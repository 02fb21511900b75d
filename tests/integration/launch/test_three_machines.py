"""The page about several machines, carried out in three network namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.network import INSIDE

TESTS = Path(__file__).resolve().parents[2]
INTO_NAMESPACES = ["unshare", "--net", "--mount"]


def why_not() -> str | None:
    if missing := [name for name in ("ip", "unshare", "nsenter") if shutil.which(name) is None]:
        return f"no {', '.join(missing)} on the PATH (Debian: iproute2, util-linux)"
    trial = [*INTO_NAMESPACES, "ip", "link", "add", "trial0", "type", "bridge"]
    done = subprocess.run(trial, capture_output=True, text=True, check=False)
    return f"no network namespaces for this user: {done.stderr.strip()}" if done.returncode else None


@pytest.mark.full("three machines of nine processes, one unplugged")
def test_three_machines_serve_as_the_page_says_and_go_on_when_one_is_unplugged(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)

    done = subprocess.run(
        [*INTO_NAMESPACES, sys.executable, "-m", "support.clusters.three_machines", str(tmp_path)],
        env={**os.environ, INSIDE: "1", "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )

    assert done.stdout.endswith("all well\n"), done.stdout + done.stderr
