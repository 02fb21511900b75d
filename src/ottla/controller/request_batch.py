"""What each broker must hear, merged: LeaderAndIsr before UpdateMetadata before StopReplica.

Requests are collected while states are written and sent in one go. A partition that is mentioned twice is
sent once, as it stands at the end; the flags *new* and *delete* stick.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ottla.controller.effects import (
    EPOCH_DURING_DELETE,
    LeaderAndIsrEntry,
    MetadataEntry,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    StopEntry,
)
from ottla.model.ids import LEADER_DURING_DELETE, NO_EPOCH, BrokerId, LeaderEpoch, TopicPartition
from ottla.model.partition_state import LeaderAndIsr

if TYPE_CHECKING:
    from ottla.controller.context import ControllerContext, Partition


class RequestBatch:
    """The requests of a turn, or of a step of it."""

    def __init__(self, context: "ControllerContext") -> None:
        self._context = context
        self._leader_and_isr: dict[BrokerId, dict[TopicPartition, bool]] = {}
        self._told: dict[TopicPartition, Partition] = {}
        self._metadata: dict[TopicPartition, Partition] = {}
        self._metadata_is_due = False
        self._stops: dict[BrokerId, dict[TopicPartition, StopEntry]] = {}

    def leader_and_isr(
        self, partition: "Partition", brokers: Iterable[BrokerId], new: Collection[BrokerId] = ()
    ) -> None:
        """Tell these replicas, and let everybody's metadata follow. Brokers that are gone are left out."""
        key = partition.key
        registered = self._context.brokers
        for broker in brokers:
            if broker in registered:
                entries = self._leader_and_isr.get(broker)
                if entries is None:
                    entries = self._leader_and_isr[broker] = {}
                entries[key] = broker in new or entries.get(key, False)
        self._told[key] = partition
        self._metadata[key] = partition

    def update_metadata(self, partitions: Iterable["Partition"] = ()) -> None:
        """Tell everybody these partitions and who is alive; with none, only who is alive."""
        self._metadata_is_due = True
        for partition in partitions:
            self._metadata[partition.key] = partition

    def stop_replica(self, partition: "Partition", broker: BrokerId, *, delete: bool) -> None:
        """Tell a broker to stop this replica, and perhaps to delete it."""
        if broker not in self._context.brokers:
            return
        entries = self._stops.setdefault(broker, {})
        earlier = entries.get(partition.key)
        entries[partition.key] = StopEntry(
            partition.key, _stop_epoch(partition), delete or (earlier is not None and earlier.delete)
        )

    def flush(self, cause: str, *, metadata_except: Collection[BrokerId] = ()) -> None:
        """Put out the requests, each broker's in their order; who has its metadata already is left out."""
        self._flush_leader_and_isr(cause)
        if self._metadata or self._metadata_is_due:
            partitions, self._metadata, self._metadata_is_due = self._metadata, {}, False
            targets = [broker for broker in self._context.brokers if broker not in metadata_except]
            self.send_metadata(targets, partitions.values(), cause)
        for broker, entries in self._stops.items():
            registration = self._context.brokers.get(broker)
            if registration is not None:
                stop = SendStopReplica(broker, registration.epoch, tuple(entries.values()), cause)
                self._context.outbox.append(stop)
        self._stops = {}

    def _flush_leader_and_isr(self, cause: str) -> None:
        made: dict[tuple[TopicPartition, bool], LeaderAndIsrEntry] = {}
        told = self._told
        for broker, flags in self._leader_and_isr.items():
            registration = self._context.brokers.get(broker)
            if registration is None:
                continue
            entries = []
            for pair in flags.items():
                entry = made.get(pair)
                if entry is None:
                    partition = told[pair[0]]
                    assert partition.state is not None, "only a written state is told"
                    entry = made[pair] = LeaderAndIsrEntry(
                        pair[0], partition.topic.id, partition.state, partition.assignment, pair[1]
                    )
                entries.append(entry)
            self._context.outbox.append(SendLeaderAndIsr(broker, registration.epoch, tuple(entries), cause))
        self._leader_and_isr = {}
        self._told = {}

    def send_metadata(
        self, brokers: Collection[BrokerId], partitions: Iterable["Partition"], cause: str
    ) -> None:
        """Put out one UpdateMetadata with the same content for all these brokers, now."""
        registered = self._context.brokers
        targets = tuple((b, registered[b].epoch) for b in brokers if b in registered)
        if targets:
            entries = tuple(self._metadata_entries(partitions))
            effect = SendUpdateMetadata(targets, entries, tuple(registered.values()), cause)
            self._context.outbox.append(effect)

    def _metadata_entries(self, partitions: Iterable["Partition"]) -> Iterable[MetadataEntry]:
        context = self._context
        offline_of: dict[tuple[BrokerId, ...], tuple[BrokerId, ...]] = {}
        for partition in partitions:
            state = partition.state
            if state is None:
                continue
            replicas = partition.assignment.replicas
            offline = offline_of.get(replicas)
            if offline is None or context.offline_replicas:
                offline = tuple([r for r in replicas if not context.is_online(partition, r)])
                offline_of[replicas] = offline
            if partition.topic.is_queued_for_deletion:
                state = _deleted(state)
            yield MetadataEntry(partition.key, partition.topic.id, state, replicas, offline)


def _deleted(state: LeaderAndIsr) -> LeaderAndIsr:
    return LeaderAndIsr(LEADER_DURING_DELETE, LeaderEpoch(0), state.isr, 0, state.controller_epoch)


def _stop_epoch(partition: "Partition") -> LeaderEpoch:
    if partition.topic.is_queued_for_deletion:
        return EPOCH_DURING_DELETE
    return NO_EPOCH if partition.state is None else partition.state.leader_epoch
