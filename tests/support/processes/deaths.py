"""A broker that dies and is known to be dead."""

from __future__ import annotations

import json

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from ottla.launch.cluster import Cluster
from support.processes.apache import wait_until_unregistered
from support.running.waiting import wait_until


def die(cluster: Cluster, number: int) -> None:
    """kill -9, and the broker's guard has ended its session.

    So sessions can be long enough for a machine that stands still for seconds, and no test waits for one.
    """
    cluster.brokers[number].kill()
    wait_until_unregistered(cluster.zookeeper.connect, number)


def end_session(client: KazooClient, number: int) -> None:
    """Take away what a dead broker's session holds, all in one step, as when it has run out."""
    end = client.transaction()
    end.delete(f"/brokers/ids/{number}")
    if _governs(client, number):
        end.delete("/controller")
    end.commit()
    path = f"/brokers/ids/{number}"
    wait_until(lambda: client.exists(path) is None, f"{path} vanishes")


def _governs(client: KazooClient, number: int) -> bool:
    try:
        return bool(json.loads(client.get("/controller")[0])["brokerid"] == number)
    except NoNodeError:
        return False
