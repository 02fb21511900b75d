"""Waits until a cluster has noticed that a broker is gone, and others lead its partitions."""

import time
from pathlib import Path

from ottla.cli.local.state import UpState
from ottla.cli.shared.connection import connected
from ottla.cli.shared.refusal import CommandRefused
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError

LIMIT_S = 60.0
LOOK_MS = 200
_IMPATIENT = {"request.timeout.ms": "2000", "default.api.timeout.ms": "6000"}


def await_others(state: UpState, broker: int) -> float:
    """The seconds it took; a partition that nobody else may lead is not waited for."""
    started = time.monotonic()
    file = None if state.client_properties is None else Path(state.client_properties)
    with connected(state.bootstrap_servers, file, settings=_IMPATIENT) as client:
        while not _is_replaced(client, broker):
            if time.monotonic() - started > LIMIT_S:
                raise CommandRefused(
                    f"broker {broker} was not replaced within {LIMIT_S:.0f} s; look with `ottla describe`"
                )
            client.run_until(lambda: False, LOOK_MS)
    return time.monotonic() - started


def _is_replaced(client: Client, broker: int) -> bool:
    try:
        response = client.run(describe_topics)
    except ClientError:
        return False
    leads = any(row.leader_id == broker for topic in response.topics for row in topic.partitions)
    return not leads and all(row.node_id != broker for row in response.brokers)
