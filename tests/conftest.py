"""What all tests share: a real ZooKeeper, the long form, and an honest account of what was left out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from support.bytecode import keep_bytecode
from support.sharing import ByFile, place_in_line

if TYPE_CHECKING:
    from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
    from support.zookeeper_chroots import Chroot, Chroots

IN_CI = os.environ.get("CI") == "true"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run tests marked long, and long counts")


def pytest_configure(config: pytest.Config) -> None:
    # How long an example takes says more about the machine's other work than about the example.
    settings.register_profile("ottla", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("ottla")
    keep_bytecode()
    config.addinivalue_line("markers", "long: runs with --long alone")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: place_in_line(item.nodeid))
    if config.getoption("--long"):
        return
    put_off = [item for item in items if item.get_closest_marker("long")]
    if put_off:
        config.hook.pytest_deselected(items=put_off)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """Several processes share the tests by the file."""
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With CI=true a test that was left out is a failure: a missing peer must not go unnoticed."""
    if IN_CI and session.exitstatus == pytest.ExitCode.OK and _left_out(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
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
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """One real ZooKeeper for the whole session. Do not stop it: start one of your own for that."""
    from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper

    with EmbeddedZooKeeper(tmp_path_factory.mktemp("zookeeper"), sync=False) as server:
        yield server


@pytest.fixture(scope="session")
def _chroots(zookeeper_server: EmbeddedZooKeeper) -> Chroots:
    from support.zookeeper_chroots import Chroots

    return Chroots(zookeeper_server)


@pytest.fixture
def zookeeper(_chroots: Chroots) -> Chroot:
    """A chroot of this test's own: ``.connect`` is ``host:port/chroot``, ``.address`` the first half."""
    return _chroots.make()


@pytest.fixture
def repository() -> Path:
    """The root of the clone."""
    return Path(__file__).resolve().parent.parent
