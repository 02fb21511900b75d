"""One client per process and cluster: a Python worker serves many tasks, one after the other."""

import os

from ottla.client.blocking.client import Client
from ottla.client.config import ClientConfig

_clients: dict[tuple[int, ClientConfig], Client] = {}


def client_for(config: ClientConfig) -> Client:
    """The process's client for a cluster; a forked process makes its own."""
    key = (os.getpid(), config)
    if key not in _clients:
        _clients[key] = Client(config)
    return _clients[key]
