"""The checksum of a batch: the one of RFC 3720, by the compiled part of crc32c alone."""

import subprocess
import sys

from ottla.records.checksum import crc32c

NOTHING_ELSE = "import sys, ottla.records.checksum; print('importlib.metadata' in sys.modules)"


def test_it_is_the_castagnoli_checksum() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA


def test_the_package_around_it_is_not_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", NOTHING_ELSE], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\n"
