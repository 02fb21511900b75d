"""What all tests share: a real ZooKeeper, the long form, and an honest account of what was left out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from support.running.bytecode import keep_bytecode
from support.running.durations import durations, write_durations
from support.running.forms import (
    add_markers,
    add_options,
    is_full,
    put_off,
    receive_put_off,
    send_put_off,
    told_put_off,
)
from support.running.sharing import ByFile, longest_first

if TYPE_CHECKING:
    from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
    from ottla.launch.zookeeper.keeper import EmbeddedKeeper
    from support.zookeeper.chroots import Chroot, Chroots

IN_CI = os.environ.get("CI") == "true"
_measured: Counter[str] = Counter()
"""Seconds by file, of this run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)
    parser.addoption(
        "--zookeeper",
        choices=("keeper", "apache"),
        help="what clusters run on, unless a test needs Apache's own server (OTTLA_ZOOKEEPER, or keeper)",
    )


def pytest_configure(config: pytest.Config) -> None:
    # How long an example takes says more about the machine's other work than about the example.
    settings.register_profile("ottla", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("ottla")
    keep_bytecode()
    add_markers(config)
    if chosen := config.getoption("--zookeeper"):
        os.environ["OTTLA_ZOOKEEPER"] = chosen


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    put_off(config, items)
    items[:] = [items[place] for place in longest_first([item.nodeid for item in items], durations())]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """Several processes share the tests by the file."""
    return ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    receive_put_off(node.config, node)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _measured[report.nodeid.split("::", 1)[0]] += report.duration


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With CI=true a test that was left out is a failure: a missing peer must not go unnoticed."""
    if IN_CI and session.exitstatus == pytest.ExitCode.OK and _left_out(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    send_put_off(session.config)
    if session.config.getoption("--weigh") and not hasattr(session.config, "workerinput"):
        write_durations(_measured)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in told_put_off(config):
        terminalreporter.write_line(line)
    for reason, count in sorted(_left_out(config).items()):
        terminalreporter.write_line(f"left out: {count} test{'s' if count > 1 else ''}: {reason}")
    if IN_CI and _left_out(config):
        terminalreporter.write_line("CI=true: what was left out counts as failed", red=True)


def _left_out(config: pytest.Config) -> Counter[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return Counter()
    reasons = []
    for report in reporter.stats.get("skipped", []):
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons.append(text.removeprefix("Skipped: "))
    return Counter(reasons)


@pytest.fixture(scope="session")
def long_form(request: pytest.FixtureRequest) -> bool:
    """Whether the long form was asked for (``--long``): more seeds, more rounds, larger counts."""
    return bool(request.config.getoption("--long"))


@pytest.fixture(scope="session")
def full_form(request: pytest.FixtureRequest) -> bool:
    """Whether this is ``make full`` or longer: more seeds than a developer waits for."""
    return is_full(request.config)


@pytest.fixture(scope="session")
def zookeeper_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[EmbeddedKeeper | EmbeddedZooKeeper]:
    """One server for the whole session, the built-in keeper or Apache's (``--zookeeper``). Do not stop it."""
    from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
    from ottla.launch.zookeeper.choice import chosen_zookeeper
    from ottla.launch.zookeeper.keeper import EmbeddedKeeper

    chosen = chosen_zookeeper(None, tmp_path_factory.mktemp("zookeeper"), sync=False)
    assert isinstance(chosen, EmbeddedKeeper | EmbeddedZooKeeper)
    with chosen as server:
        yield server


@pytest.fixture(scope="session")
def apache_zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """One ZooKeeper of Apache's for the whole session. Do not stop it: start one of your own for that."""
    from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper

    with EmbeddedZooKeeper(tmp_path_factory.mktemp("zookeeper"), sync=False) as server:
        yield server


@pytest.fixture(scope="session")
def chroots(zookeeper_server: EmbeddedKeeper | EmbeddedZooKeeper) -> Chroots:
    """For clusters that several tests share, and do not take ZooKeeper from: ``chroots.make()``."""
    from support.zookeeper.chroots import Chroots

    return Chroots(zookeeper_server)


@pytest.fixture
def zookeeper(chroots: Chroots) -> Chroot:
    """A chroot of this test's own: ``.connect`` is ``host:port/chroot``, ``.address`` the first half."""
    return chroots.make()


@pytest.fixture
def repository() -> Path:
    """The root of the clone."""
    return Path(__file__).resolve().parent.parent
