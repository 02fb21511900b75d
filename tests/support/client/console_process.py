"""``ottla console`` in a process of its own, and its pages for tests that need no browser."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.processes.commands import ottla_command

SECONDS_MAX = 60


@contextmanager
def running_console(bootstrap_servers: str, *more: str) -> Iterator[str]:
    """The address that it prints; at the end it stops in order."""
    words = ottla_command("console", "--bootstrap-server", bootstrap_servers, "--port", "0", *more)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as console:
        assert console.stdout is not None
        try:
            yield console.stdout.readline().split()[0]
        finally:
            console.terminate()
            code = console.wait(timeout=SECONDS_MAX)
    assert code == 0, "a console that is asked to end stops in order"


def page_of(address: str, path: str) -> str:
    """A page, asked for as programs do."""
    base, _, secret = address.partition("/?token=")
    request = urllib.request.Request(base + path, headers={"Authorization": f"Bearer {secret}"})
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        return str(answer.read().decode())


def twin_of(address: str, path: str) -> Any:
    """A JSON twin."""
    return json.loads(page_of(address, path))
