"""The unit file for systemd says nothing that systemd does not understand."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[3] / "docs" / "operating" / "ottla-broker.service"


def verify(text: str, directory: Path) -> str:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    file = directory / UNIT.name
    file.write_text(text.replace("/opt/ottla/bin/ottla", sys.executable))
    done = subprocess.run([analyze, "verify", "--man=no", file], capture_output=True, text=True, check=False)
    return "\n".join(line for line in (done.stdout + done.stderr).splitlines() if UNIT.name in line)


def test_systemd_understands_the_unit_file(tmp_path: Path) -> None:
    assert verify(UNIT.read_text(), tmp_path) == ""


def test_a_mistake_in_it_would_be_seen(tmp_path: Path) -> None:
    assert "kill mode" in verify(UNIT.read_text().replace("=control-group", "=gently"), tmp_path)
