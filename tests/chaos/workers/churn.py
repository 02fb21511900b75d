"""Administration without pause: topics come, grow and go, replicas move, preferred leaders are elected.

Ottla's own client does it; every answer is kept. An operation may fail because of a fault: only what was
confirmed is held against the cluster.
"""

from __future__ import annotations

import random

from chaos.history import HistoryFile
from chaos.workers.common import Orders, Task
from ottla.client.admin.cluster import alter_partition_reassignments, elect_leaders
from ottla.client.admin.topics import a_topic, create_partitions, create_topics, delete_topics
from ottla.client.blocking.client import Client
from ottla.client.config import ClientConfig, parse_bootstrap_servers
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition

ANSWER_MS_MAX = 8_000
CHURNED = "-churn-"
"""In the name of every topic that comes and goes."""
TOPICS_KEPT_MAX = 5


class Churn:
    """One administrator and its history."""

    def __init__(self, task: Task, client: Client) -> None:
        self._task = task
        self._client = client
        self._random = random.Random(int(task.options["seed"]))
        self._brokers = [int(number) for number in task.options["brokers"]]
        self._history = HistoryFile(task.directory, task.name)
        self._made = 0
        self._alive: list[str] = []

    def run(self, orders: Orders) -> None:
        steps = (self._create, self._grow, self._delete, self._move, self._move, self._elect)
        while not orders.wait(self._random.uniform(0.1, 0.8)):
            step = self._random.choice(steps)
            try:
                step()
            except ClientError as error:
                self._history.write("complained", step=step.__name__, why=str(error))
            self._history.flush()
        self._history.write("finished", alive=self._alive)
        self._history.close()

    def _create(self) -> None:
        if len(self._alive) >= TOPICS_KEPT_MAX:
            return
        name = f"{self._task.topic}{CHURNED}{self._made}"
        self._made += 1
        self._history.write("creating", topic=name)
        topic = a_topic(name, partitions=2, replication_factor=min(3, len(self._brokers)))
        rows = self._client.run(create_topics, [topic], timeout_ms=ANSWER_MS_MAX)
        if rows[0].error_code == 0:
            self._alive.append(name)
            self._history.write("created", topic=name)

    def _grow(self) -> None:
        if self._alive:
            name = self._random.choice(self._alive)
            rows = self._client.run(create_partitions, {name: 3}, timeout_ms=ANSWER_MS_MAX)
            self._history.write("grown", topic=name, code=rows[0].error_code)

    def _delete(self) -> None:
        if not self._alive:
            return
        name = self._random.choice(self._alive)
        self._alive.remove(name)
        self._history.write("deleting", topic=name)
        rows = self._client.run(delete_topics, [name], timeout_ms=ANSWER_MS_MAX)
        if rows[0].error_code == 0:
            self._history.write("deleted", topic=name)

    def _move(self) -> None:
        partition = self._random.randrange(self._task.partitions)
        replicas = tuple(self._random.sample(self._brokers, min(3, len(self._brokers))))
        target = {TopicPartition(self._task.topic, partition): replicas}
        rows = self._client.run(alter_partition_reassignments, target, timeout_ms=ANSWER_MS_MAX)
        codes = [row.error_code for row in rows.values()]
        self._history.write("moved", partition=partition, replicas=replicas, codes=codes)

    def _elect(self) -> None:
        answer = self._client.run(elect_leaders, None, timeout_ms=ANSWER_MS_MAX)
        self._history.write("elected", answer=str(answer)[:200])


def work(task: Task, orders: Orders) -> None:
    config = ClientConfig(
        bootstrap_servers=parse_bootstrap_servers(task.bootstrap),
        request_timeout_ms=ANSWER_MS_MAX // 2,
        socket_connection_setup_timeout_ms=2_000,
    )
    with Client(config) as client:
        Churn(task, client).run(orders)
