"""A data directory has one owner at a time."""

import fcntl
import os
import threading
from pathlib import Path

import pytest

from ottla.launch.data_dir import lock_data_dir
from ottla.launch.refusal import LaunchRefused


def test_second_owner_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    first = lock_data_dir(tmp_path / "data", "lock")
    try:
        with pytest.raises(
            LaunchRefused, match=f"in use: process {os.getpid()} started a server on it; stop that one"
        ):
            lock_data_dir(tmp_path / "data", "lock")
    finally:
        os.close(first)


def test_directory_is_free_again_when_the_owner_lets_go(tmp_path: Path) -> None:
    os.close(lock_data_dir(tmp_path, "lock"))

    os.close(lock_data_dir(tmp_path, "lock"))


def test_lock_lasts_while_a_copy_of_the_descriptor_is_open(tmp_path: Path) -> None:
    first = lock_data_dir(tmp_path, "lock")
    copy = os.dup(first)
    os.close(first)
    try:
        with pytest.raises(LaunchRefused):
            lock_data_dir(tmp_path, "lock")
    finally:
        os.close(copy)


def test_file_in_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")

    with pytest.raises(LaunchRefused, match=r"cannot keep data in .* choose another data directory"):
        lock_data_dir(tmp_path / "data", "lock")


def test_one_who_only_looks_is_waited_for(tmp_path: Path) -> None:
    os.close(lock_data_dir(tmp_path, "lock"))
    looking = os.open(tmp_path / "lock", os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.1, os.close, [looking]).start()

    os.close(lock_data_dir(tmp_path, "lock"))
