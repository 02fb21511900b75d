"""kazoo's own tests, out of its wheel, against the keeper: what one Apache server passes must pass."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import kazoo
import pytest

SUITE = Path(kazoo.__file__).parent / "tests"
OTHER_LOOPS = ("test_gevent_handler.py", "test_eventlet_handler.py")
NOT_OVER_ONE_SERVER = {
    "TestClient::test_update_host_list": "stops one of three servers",
    "TestReadOnlyMode::test_read_only": "stops one of three servers",
    "TestReconfig::test_add_remove_observer": "changes an ensemble",
    "TestReconfig::test_bad_input": "changes an ensemble",
    "TestReconfig::test_no_super_auth": "changes an ensemble",
    "TestSSLClient::test_create": "wants TLS",
}
"""What one Apache server fails as well, and why."""
RACES = {
    "TestConnectionDrop::test_connection_dropped": "expects to drop the connection before the server answers",
}
"""What depends on who is faster, on a busy machine, whatever the server is."""
TESTS_MIN = 300


def run_suite(place: Path, server: str) -> tuple[set[str], int]:
    """The names of the tests that failed, and how many ran."""
    report = place / "report.xml"
    environ = {
        **os.environ,
        "OTTLA_KAZOO_SERVER": server,
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "PYTEST_ADDOPTS": "",
    }
    switches = ["-q", "-c", os.devnull, "--rootdir", str(place), "--import-mode=importlib"]
    switches += ["-p", "support.zookeeper.kazoo_cluster", "-p", "no:randomly", "-p", "no:cacheprovider"]
    switches += [f"--ignore={SUITE / name}" for name in OTHER_LOOPS]
    command = [sys.executable, "-m", "pytest", *switches, f"--junit-xml={report}", str(SUITE)]
    done = subprocess.run(
        [*command, "-n", "4", "--dist", "loadfile"],
        env=environ,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    failed, count = set(), 0
    for case in ET.parse(report).iter("testcase"):
        if case.find("skipped") is not None:
            continue
        count += 1
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}")
    return failed, count


@pytest.mark.full("a minute of kazoo's tests, which wait for sessions to expire")
def test_what_one_apache_server_passes_the_keeper_passes(tmp_path: Path) -> None:
    failed, count = run_suite(tmp_path, "keeper")

    assert failed <= NOT_OVER_ONE_SERVER.keys() | RACES.keys()
    assert count >= TESTS_MIN


@pytest.mark.long
def test_one_apache_server_fails_what_is_listed(tmp_path: Path) -> None:
    failed, _ = run_suite(tmp_path, "apache")

    assert failed >= NOT_OVER_ONE_SERVER.keys()
