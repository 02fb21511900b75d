"""Planted bugs of the controller, of its orders, and of how brokers take them."""

from __future__ import annotations

from typing import Any

from ottla.broker.apis.control import fences, leader_and_isr, stop_replica, update_metadata
from ottla.broker.controlling import writes
from ottla.broker.controlling.candidate import ControllerHost
from ottla.broker.controlling.steps import Fence
from ottla.broker.life.registration import Registration
from ottla.broker.metadata.gone_topics import GoneTopics
from ottla.broker.peers.channel import BrokerChannel
from ottla.broker.peers.links import LinkLost
from ottla.broker.producers.ids import ProducerIds
from ottla.broker.replicas.hosted import Partitions
from ottla.controller.context import ControllerContext
from ottla.controller.duties import isr_changes, preferred, reassignment
from ottla.controller.request_batch import RequestBatch
from ottla.controller.states import state_changes
from ottla.model.errors import ErrorCode
from ottla.sim.machine.guard import SimGuard
from ottla.znodes import paths
from ottla.zookeeper.ops import ANY_VERSION, Check
from simulation.planting import all_of, replaced


def no_controller_epoch_fence() -> Any:
    """A broker obeys a controller that was replaced."""

    def fence(node: Any, controller_epoch: int, broker_epoch: int, is_kraft: bool) -> ErrorCode:
        return ErrorCode.NONE

    return all_of(
        replaced(leader_and_isr, "fence", fence),
        replaced(update_metadata, "fence", fence),
        replaced(stop_replica, "fence", fence),
    )


def unclean_always() -> Any:
    """Any live replica may lead, in sync or not."""
    original = state_changes.elect_for_offline_partition

    def elect(assignment: Any, current: Any, online: Any, *, unclean_allowed: bool = False) -> Any:
        return original(assignment, current, online, unclean_allowed=True)

    return replaced(state_changes, "elect_for_offline_partition", elect)


def isr_of_strangers() -> Any:
    """The controller takes ISR changes of older partition epochs."""
    original = isr_changes.judge

    def judge(context: Any, event: Any, change: Any) -> Any:
        partition = context.partitions.get(change.partition)
        if partition is not None and partition.state is not None:
            newest = max(change.partition_epoch, partition.state.partition_epoch)
            change = change._replace(partition_epoch=newest)
        return original(context, event, change)

    return replaced(isr_changes, "judge", judge)


def lost_requests_stay_lost() -> Any:
    """The controller does not repeat what a broker did not hear (KAFKA-1187)."""

    def answered(self: BrokerChannel, response: Any) -> None:
        original(self, response if type(response).__name__ != "LinkLost" else _Nothing())

    original = BrokerChannel._answered
    return replaced(BrokerChannel, "_answered", answered)


class _Nothing:
    error_code = 0
    topics: tuple[Any, ...] = ()
    partition_errors: tuple[Any, ...] = ()


def gone_topics_stay() -> Any:
    """A broker that registers again shows topics that were deleted meanwhile (found by seed 1946504082)."""
    return replaced(GoneTopics, "on_update", lambda self, broker_epoch, update: None)


def removed_replicas_stay() -> Any:
    """A leader that missed its removal leads on (found by seeds 1130523223 and 1130523445)."""
    return replaced(Partitions, "_leave_if_removed", lambda self, name: None)


def never_registers_again() -> Any:
    """After its session ended a broker lives on without a registration (KAFKA-5473)."""
    return replaced(Registration, "register_again", lambda self, then: None)


def paused_means_dead() -> Any:
    """A guard ends the session of a process that only stands still."""
    return replaced(SimGuard, "is_dead", lambda self: not self._process.is_running)


def never_stands_again() -> Any:
    """Nobody takes the office after the controller is gone."""
    return replaced(ControllerHost, "_on_controller_node", lambda self, event: None)


def no_fence_in_zookeeper() -> Any:
    """A controller's writes do not ask whether another was elected (KAFKA-6082)."""
    return replaced(Fence, "check", property(lambda self: Check("/brokers", ANY_VERSION)))


def unknown_while_reading() -> Any:
    """A controller calls topics unknown that it has not read yet (found by seed 70)."""
    return replaced(ControllerHost, "is_serving", property(lambda self: self._term is not None))


def moves_end_early() -> Any:
    """A reassignment ends before its new replicas are in sync."""
    return replaced(reassignment, "_is_in_sync", lambda partition: partition.state is not None)


def preferred_whatever_the_isr() -> Any:
    """The preferred replica is elected although it is not in sync."""
    original = preferred.elect_preferred_replica

    def elect(assignment: Any, current: Any, online: Any) -> Any:
        everyone = current.isr + tuple(r for r in assignment.replicas if r not in current.isr)
        return original(assignment, current._replace(isr=everyone), online)

    return replaced(preferred, "elect_preferred_replica", elect)


def isr_of_the_dead() -> Any:
    """The controller takes brokers into an ISR that are gone, or have lived again since (KIP-841)."""
    return replaced(isr_changes, "_why_unsound", lambda *arguments: ErrorCode.NONE)


def nobody_is_told() -> Any:
    """Brokers are not told what changed."""
    return replaced(RequestBatch, "update_metadata", lambda self, partitions=(): None)


def deleted_logs_stay() -> Any:
    """StopReplica with delete stops a replica and leaves its log (KAFKA-9946)."""
    original = Partitions.stop_replica

    def stop(self: Partitions, name: Any, leader_epoch: int, *, delete: bool) -> Any:
        return original(self, name, leader_epoch, delete=False)

    return replaced(Partitions, "stop_replica", stop)


def stale_lives_obeyed() -> Any:
    """A broker obeys what was meant for its life before (KAFKA-7235)."""
    return replaced(fences, "is_broker_epoch_stale", lambda node, broker_epoch: False)


def producer_ids_given_twice() -> Any:
    """Every broker hands out the same producer ids."""
    original = ProducerIds._answered

    def answered(self: ProducerIds, response: Any) -> None:
        if not isinstance(response, LinkLost):
            response.producer_id_start = 0
        original(self, response)

    return replaced(ProducerIds, "_answered", answered)


def versions_unchecked() -> Any:
    """States of partitions are written over whatever stands there (KAFKA-2729 the other way round)."""
    original = writes.SetData

    def set_data(path: str, data: Any, version: int) -> Any:
        return original(path, data, ANY_VERSION if path.startswith(paths.TOPICS) else version)

    return replaced(writes, "SetData", set_data)


def nothing_checked_in_zookeeper() -> Any:
    """Neither another controller nor another state stops a controller's write."""
    return all_of(no_fence_in_zookeeper(), versions_unchecked())


def leaving_for_ever() -> Any:
    """A broker that comes back before its controlled shutdown was noticed may never lead or join an ISR."""

    def forget(self: ControllerContext, broker: Any) -> None:
        leaving = broker in self.shutting_down
        original(self, broker)
        if leaving:
            self.mark_shutting_down(broker)

    original = ControllerContext.forget_failures
    return replaced(ControllerContext, "forget_failures", forget)


def looks_for_ever() -> Any:
    """A broker whose session ended while it looked who is controller never looks again."""

    def void(self: ControllerHost) -> None:
        looks = self._is_looking
        original(self)
        self._is_looking = looks

    original = ControllerHost._void
    return replaced(ControllerHost, "_void", void)
