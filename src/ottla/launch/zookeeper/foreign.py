"""ZooKeeper servers that somebody else runs: checked before the brokers start, and never stopped."""

import time
from typing import Self

from ottla.launch.refusal import LaunchRefused
from ottla.launch.zookeeper_probe import accepts_sessions
from ottla.zookeeper.connect_string import parse_connect_string

WAIT_S = 10.0
_ASK_S = 2.0
_LOOK_AGAIN_S = 0.2


class ForeignZooKeeper:
    """What a cluster needs to know of them: where they are, and that one of them grants sessions."""

    def __init__(self, connect: str) -> None:
        try:
            self._hosts = parse_connect_string(connect).hosts
        except ValueError as bad:
            raise LaunchRefused(str(bad)) from None
        self.connect = connect

    def start(self) -> Self:
        """Wait until one of the servers grants a session."""
        give_up = time.monotonic() + WAIT_S
        while not any(accepts_sessions(host, port, _ASK_S) for host, port in self._hosts):
            if time.monotonic() > give_up:
                raise LaunchRefused(
                    f"no ZooKeeper server of {self.connect} grants a session; start it, or leave --zookeeper"
                    " out to have one started"
                )
            time.sleep(_LOOK_AGAIN_S)
        return self

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Only wait: we cannot know whether the servers end."""
        time.sleep(timeout_s or 0)
        return None

    def __str__(self) -> str:
        return f"ZooKeeper at {self.connect}"

    def stop(self) -> None:
        """Do nothing: the servers are not ours."""
