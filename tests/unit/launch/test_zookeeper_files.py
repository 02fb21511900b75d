"""What is read out of a ZooKeeper's log and written into its configuration."""

from pathlib import Path

import pytest

from ottla.launch.zookeeper_files import FatalError, fatal_error, write_files

GAVE_UP = "2026-01-01T10:00:00,000 ERROR ZooKeeperServerMain Unexpected exception, exiting abnormally\n"
READING = (
    "\tat org.apache.zookeeper.server.persistence.FileTxnLog$FileTxnIterator.next(FileTxnLog.java:700)\n"
)
LATER = (
    "2026-01-01T10:00:00,001 WARN NIOServerCnxn Close of session 0x0\n"
    "java.io.IOException: ZooKeeperServer not running\n"
)


def a_log(directory: Path, text: str) -> Path:
    log = directory / "zookeeper.log"
    log.write_text(text)
    return log


def test_exception_that_ended_the_server_is_told_from_those_around_it(tmp_path: Path) -> None:
    log = a_log(tmp_path, LATER + GAVE_UP + "java.io.IOException: CRC check failed\n" + READING + LATER)

    assert fatal_error(log, 0) == FatalError("CRC check failed", data_is_damaged=True, port_in_use=False)


def test_innermost_cause_is_named(tmp_path: Path) -> None:
    thrown = (
        "java.lang.RuntimeException: Unable to run\n\tat x.Y\nCaused by: java.io.EOFException\n" + READING
    )
    log = a_log(tmp_path, GAVE_UP + thrown)

    assert fatal_error(log, 0) == FatalError("EOFException", data_is_damaged=True, port_in_use=False)


def test_taken_port_is_recognised(tmp_path: Path) -> None:
    log = a_log(tmp_path, GAVE_UP + "java.net.BindException: Address already in use\n\tat sun.nio.ch.Net\n")

    assert fatal_error(log, 0) == FatalError(
        "Address already in use", data_is_damaged=False, port_in_use=True
    )


@pytest.mark.parametrize("message", ["No space left on device", "x (Permission denied)"])
def test_want_of_space_or_permission_is_not_called_damage(tmp_path: Path, message: str) -> None:
    log = a_log(tmp_path, GAVE_UP + f"java.io.IOException: {message}\n" + READING)

    assert fatal_error(log, 0) == FatalError(message, data_is_damaged=False, port_in_use=False)


def test_errors_of_an_earlier_start_are_not_blamed(tmp_path: Path) -> None:
    earlier = GAVE_UP + "java.io.IOException: CRC check failed\n" + READING
    log = a_log(tmp_path, earlier + LATER)

    assert fatal_error(log, len(earlier)) is None


def test_no_log_names_no_error(tmp_path: Path) -> None:
    assert fatal_error(tmp_path / "absent", 0) is None


def test_configuration_holds_one_line_a_setting_and_logging_points_into_the_data_directory(
    tmp_path: Path,
) -> None:
    config, logging = write_files(tmp_path, {"clientPort": "2181", "odd": "back\\slash"})

    assert config.read_text() == "clientPort=2181\nodd=back\\\\slash\n"
    assert f"fileName = {tmp_path / 'zookeeper.log'}\n" in logging.read_text()


def test_configuration_is_ascii_whatever_the_path(tmp_path: Path) -> None:
    config, _ = write_files(tmp_path, {"dataDir": "/dätä 🐘"})

    assert config.read_bytes() == rb"dataDir=/d\u00e4t\u00e4 \ud83d\udc18" + b"\n"
