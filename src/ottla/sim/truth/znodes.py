"""What must hold of ZooKeeper's content after every write, and the story those writes tell."""

import json
from collections.abc import Callable
from typing import Any

from ottla.model.ids import TopicPartition
from ottla.sim.machine.zookeeper_server import ZooKeeperServer
from ottla.sim.truth.history import History, Violation
from ottla.sim.world import World
from ottla.znodes import paths
from ottla.zookeeper.ops import Create, Delete, Failed, Multi, MultiFailed, SetData

_TOPICS = paths.TOPICS + "/"


class UncleanElection:
    """A leader that was not in sync was elected; a receipt must tell of it."""

    __slots__ = ("controller", "epoch", "life", "partition")

    def __init__(self, partition: TopicPartition, epoch: int, controller: int, life: int) -> None:
        self.partition = partition
        self.epoch = epoch
        self.controller = controller
        self.life = life


class ZnodeChecks:
    """Looks at each write: epochs grow, leaders are in sync, only the present controller writes."""

    def __init__(
        self, world: World, tree: ZooKeeperServer, history: History, life_of: Callable[[int], int]
    ) -> None:
        self.unclean_allowed: set[str] = set()
        """Topics on which a replica that is not in sync may be elected."""
        self.unclean: list[UncleanElection] = []
        self.elections = 0
        self._world = world
        self._tree = tree
        self._history = history
        self._life_of = life_of
        self._states: dict[TopicPartition, dict[str, Any]] = {}
        self._assignments: dict[str, dict[str, Any]] = {}
        self._controller_epoch = 0

    def on_write(self, op: Any, result: Any) -> None:
        """Called after every operation that a session performed."""
        if isinstance(result, Failed | MultiFailed):
            return
        for each in op.ops if isinstance(op, Multi) else (op,):
            match each:
                case SetData() | Create():
                    self._written(each.path, each.data)
                case Delete():
                    self._deleted(each.path)
                case _:
                    pass

    def _deleted(self, path: str) -> None:
        if path.startswith(_TOPICS):
            parts = path[len(_TOPICS) :].split("/")
            if len(parts) == 1:
                self._assignments.pop(parts[0], None)
                self._world.tell(f"{parts[0]} is gone from ZooKeeper")
            elif len(parts) == 4:
                self._states.pop(TopicPartition(parts[0], int(parts[2])), None)

    def _written(self, path: str, data: bytes | None) -> None:
        if path == paths.CONTROLLER_EPOCH:
            self._controller_epoch_written(int(data or b"0"))
        elif path == paths.CONTROLLER and data:
            self._world.tell(f"broker {json.loads(data)['brokerid']} is the controller")
        elif path.startswith(_TOPICS) and data:
            parts = path[len(_TOPICS) :].split("/")
            if len(parts) == 1:
                self._assigned(parts[0], json.loads(data))
            elif len(parts) == 4:
                self._state_written(TopicPartition(parts[0], int(parts[2])), json.loads(data))

    def _controller_epoch_written(self, epoch: int) -> None:
        if epoch <= self._controller_epoch and self._controller_epoch:
            raise Violation(f"the controller's epoch went from {self._controller_epoch} to {epoch}")
        self._controller_epoch = epoch

    # -- partitions --------------------------------------------------------------------------

    def _state_written(self, partition: TopicPartition, state: dict[str, Any]) -> None:
        leader, epoch, isr = state["leader"], state["leader_epoch"], state["isr"]
        if state["controller_epoch"] != self._controller_epoch:
            raise Violation(
                f"{partition} was written by the controller of epoch {state['controller_epoch']},"
                f" though {self._controller_epoch} had begun"
            )
        if not isr or (leader >= 0 and leader not in isr):
            raise Violation(f"{partition} has leader {leader} and ISR {isr}")
        before = self._states.get(partition)
        self._states[partition] = state
        if before is None:
            return
        if epoch < before["leader_epoch"] or (epoch == before["leader_epoch"] and leader != before["leader"]):
            raise Violation(
                f"{partition} went from leader {before['leader']} in epoch {before['leader_epoch']}"
                f" to leader {leader} in epoch {epoch}"
            )
        if leader >= 0 and leader not in before["isr"]:
            self._unclean_election(partition, state, before)
        self._tell(partition, state, before)

    def _unclean_election(
        self, partition: TopicPartition, state: dict[str, Any], before: dict[str, Any]
    ) -> None:
        if partition.topic not in self.unclean_allowed:
            raise Violation(
                f"{partition} was given to {state['leader']}, which was not in the ISR {before['isr']}"
            )
        self._world.tell(f"{partition}: unclean election of {state['leader']}")
        self._history.unclean.add(partition)
        node = self._tree.nodes.get(paths.CONTROLLER)
        controller = json.loads(node.data or b"{}").get("brokerid", -1) if node is not None else -1
        life = self._life_of(controller)
        self.unclean.append(UncleanElection(partition, state["leader_epoch"], controller, life))

    def _tell(self, partition: TopicPartition, state: dict[str, Any], before: dict[str, Any]) -> None:
        isr = ",".join(map(str, state["isr"]))
        if state["leader"] != before["leader"]:
            self.elections += 1
            self._world.tell(
                f"{partition}: leader {before['leader']} -> {state['leader']}"
                f" epoch {state['leader_epoch']} isr {isr}"
            )
        elif state["isr"] != before["isr"]:
            self._world.tell(f"{partition}: isr {','.join(map(str, before['isr']))} -> {isr}")

    def _assigned(self, topic: str, assignment: dict[str, Any]) -> None:
        """A reassignment ends only when all its new replicas are in sync."""
        before = self._assignments.get(topic)
        self._assignments[topic] = assignment
        if before is None:
            return
        if assignment.get("topic_id") != before.get("topic_id"):
            raise Violation(f"the id of {topic} changed")
        for index, replicas in assignment["partitions"].items():
            old = before["partitions"].get(index)
            if old is None or old == replicas:
                continue
            self._world.tell(f"{topic}-{index}: replicas {old} -> {replicas}")
            adding = before.get("adding_replicas", {}).get(index, [])
            is_over = not assignment.get("adding_replicas", {}).get(index, [])
            state = self._states.get(TopicPartition(topic, int(index)))
            came = [replica for replica in adding if replica in replicas]
            if is_over and came and state is not None and not set(came) <= set(state["isr"]):
                raise Violation(
                    f"the reassignment of {topic}-{index} ended with {came} new and {state['isr']} in sync"
                )
