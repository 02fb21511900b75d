"""The controller: one term in office. Events in, effects out, one turn after the other; no I/O, no clock.

A turn begins with news and ends when its last effect has its outcome. While one runs, the only event taken is
the outcome it waits for. Resignation is not an event: the host drops the object, and nothing of the term is
left.
"""

from typing import assert_never

from ottla.controller.context import ControllerContext
from ottla.controller.duties import (
    creation,
    deletion,
    failover,
    growth,
    isr_changes,
    membership,
    preferred,
    reassignment,
    shutdown,
    topics,
)
from ottla.controller.effects import AwaitedEffect, Effect, Resign
from ottla.controller.events import (
    AlterPartitionRequested,
    BrokersChanged,
    ControlledShutdownRequested,
    DeletionsRequested,
    ElectLeadersRequested,
    Event,
    IsrNotified,
    LogDirsFailed,
    News,
    Outcome,
    PartitionsRequested,
    PreferredElectionWritten,
    ReassignmentRequested,
    ReassignmentsListed,
    ReassignmentsWritten,
    RebalanceDue,
    ReplicasDeleted,
    ReplicasReported,
    TookOffice,
    TopicChanged,
    TopicCreationRequested,
    TopicsChanged,
    UncleanElectionEnabled,
)
from ottla.controller.turns import MustResign, Turn
from ottla.model.ids import BrokerId


class Controller:
    """Decides for the whole cluster, for as long as its controller epoch is the highest."""

    def __init__(self, broker: BrokerId, controller_epoch: int) -> None:
        self.context = ControllerContext(broker, controller_epoch)
        self._turn: Turn[None] | None = None
        self._cause = ""

    def handle(self, event: Event) -> list[Effect]:
        """Take one event; the effects are to be carried out in their order."""
        if isinstance(event, Outcome):
            assert self._turn is not None, f"{event} came, but no turn waits for it"
            return self._step(self._turn, event)
        assert self._turn is None, f"{event} came before the turn of {self._cause!r} ended"
        self._cause = event.cause
        turn = self._begin(event)
        if turn is None:
            return self._end()
        return self._step(turn, None)

    def _step(self, turn: Turn[None], outcome: Outcome | None) -> list[Effect]:
        try:
            # A generator starts with None and goes on with the outcome it asked for.
            effect: AwaitedEffect = turn.send(outcome) if outcome is not None else next(turn)
        except StopIteration:
            return self._end()
        except MustResign as why:
            return [*self._end(), Resign(str(why))]  # what was written before keeps its reasons
        self._turn = turn
        return [*self.context.take_outbox(), effect]

    def _end(self) -> list[Effect]:
        self._turn = None
        return [*self.context.take_outbox(), *self.context.take_decisions(self._cause)]

    def _begin(self, event: News) -> Turn[None] | None:
        match event:
            case AlterPartitionRequested():
                return isr_changes.on_alter_partition(self.context, event)
            case BrokersChanged():
                return membership.on_brokers_changed(self.context, event)
            case TopicsChanged():
                return topics.on_topics_changed(self.context, event)
            case TopicChanged():
                return topics.on_topic_changed(self.context, event)
            case ReplicasDeleted():
                return deletion.on_replicas_deleted(self.context, event)
            case TopicCreationRequested():
                return creation.on_requested(self.context, event)
            case PartitionsRequested():
                return growth.on_requested(self.context, event)
            case DeletionsRequested():
                return deletion.on_deletions_requested(self.context, event)
            case ReassignmentRequested():
                return reassignment.on_requested(self.context, event)
            case ReassignmentsListed():
                reassignment.on_listed(self.context, event)
                return None
            case ReassignmentsWritten():
                return reassignment.on_written(self.context, event)
            case ElectLeadersRequested():
                return preferred.on_requested(self.context, event)
            case PreferredElectionWritten():
                return preferred.on_written(self.context, event)
            case RebalanceDue():
                return preferred.on_rebalance_due(self.context, event)
            case UncleanElectionEnabled():
                return preferred.on_unclean_enabled(self.context, event)
            case ControlledShutdownRequested():
                return shutdown.on_requested(self.context, event)
            case ReplicasReported():
                return isr_changes.on_replicas_reported(self.context, event)
            case IsrNotified():
                return isr_changes.on_isr_notified(self.context, event)
            case LogDirsFailed():
                isr_changes.on_log_dirs_failed(self.context, event)
                return None
            case TookOffice():
                return failover.take_office(self.context, event)
            case _:
                assert_never(event)
