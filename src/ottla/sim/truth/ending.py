"""The end of a run: all faults heal, everything must converge, and nothing promised may be missing."""

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import DECISIONS_TOPIC
from ottla.sim.cluster import GROUP, GROUP_PARTITIONS, OWN_GROUP, Cluster
from ottla.sim.load.churn import PREFIX as CHURNED
from ottla.sim.load.groups import Member
from ottla.sim.load.own_workload import OwnMember
from ottla.sim.load.producers import Producer
from ottla.sim.machine.broker import SimBroker
from ottla.sim.plan import TopicKind
from ottla.sim.truth.contents import bytes_of, contents_of, newest, records_of
from ottla.sim.truth.history import FinalLog, Violation
from ottla.sim.truth.transactions_ending import TransactionsEnding
from ottla.sim.world import SECOND
from ottla.storage.log.log import Log
from ottla.znodes import paths

SILENCE_AFTER_US = 30 * SECOND


class Ending:
    """Heals a cluster and judges it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.history = cluster.history
        self._transactions = TransactionsEnding(cluster, self._leader_log)
        self._was_starting: dict[SimBroker, int] = {}
        """Brokers that were starting when all healed, and how often each had started."""

    # -- healing -----------------------------------------------------------------------------

    def heal(self) -> None:
        """No more faults: everyone is up and can talk, and bad disks were mended."""
        self.world.tell("all faults heal")
        cluster = self.cluster
        cluster.network.unblock_all()
        cluster.network.is_slow = False
        cluster.network.slow_hosts.clear()
        cluster.zookeeper.heal()
        cluster.transactions.thaw()
        for broker in cluster.brokers.values():
            broker.doom = None
            broker.clock.wall_jump_ms = 0
            broker.disk.heal()
            if broker.is_paused:
                broker.resume()
        self._was_starting = {
            broker: broker.life
            for broker in cluster.brokers.values()
            if broker.is_running and not broker.node.is_started
        }
        for broker in cluster.brokers.values():
            if broker.is_running and _has_lost_a_directory(broker):
                broker.kill()
        self._keep_running()
        self.world.after(SILENCE_AFTER_US, self._expect_answers)

    def _keep_running(self) -> None:
        """From now on, whoever ends is started again: some were just about to stop when all healed.

        Others were just starting, and had found their disk bad already.
        """
        for broker, life in self._was_starting.items():
            if broker.is_running and broker.life == life and _has_lost_a_directory(broker):
                broker.kill()
        for broker in self.cluster.brokers.values():
            if self.cluster.may_start(broker):
                broker.start()
        self.world.after(SECOND, self._keep_running)

    def _expect_answers(self) -> None:
        """By now every question must be answered."""

        def silence(client: str, broker: str) -> None:
            raise Violation(f"no answer: {broker} left {client} waiting")

        self.world.on_silence = silence

    # -- judging -----------------------------------------------------------------------------

    def check(self) -> None:
        """Everything converges, and nothing that was promised is missing."""
        cluster = self.cluster
        cluster.await_(self._is_whole, 90 * SECOND, "every partition has all its replicas in sync")
        cluster.await_(self._is_known, 20 * SECOND, "every broker knows what ZooKeeper says")
        for client in (*cluster.producers, *cluster.careless):
            client.is_stopped = True
        for own in (*cluster.own_producers, *cluster.own_readers):
            own.is_stopped = True
        cluster.await_(self._producers_are_served, 60 * SECOND, "producers are served")
        self._transactions.come_to_rest()
        self._check_groups()
        self._check_churn()
        cluster.await_(self._replicas_end_equal, 30 * SECOND, "followers hold what their leaders hold")
        cluster.await_(self._consumers_are_done, 30 * SECOND, "consumers read everything")
        logs = {partition: self._final_log(partition) for partition in cluster.partitions()}
        self.history.check_final(logs)
        self._check_consumers(logs)
        self._check_given(logs)
        self._transactions.check()
        self.check_replicas()
        self._check_receipts()

    def _is_whole(self) -> bool:
        if not self.cluster.is_whole() or self._znode_names("/admin/reassign_partitions"):
            return False
        for name in self._znode_names(paths.TOPICS):
            topic = self.cluster.topic_of(name) or {}
            if any(topic.get("adding_replicas", {}).values()) or any(
                topic.get("removing_replicas", {}).values()
            ):
                return False
        return True

    def _is_known(self) -> bool:
        """There is a controller, and each broker's picture of leaders, epochs and ISRs is ZooKeeper's."""
        node = self.cluster.zookeeper.tree.nodes.get(paths.CONTROLLER)
        controller = json.loads(node.data or b"{}").get("brokerid", -1) if node is not None else -1
        if any(broker.node.metadata.controller != controller for broker in self.cluster.brokers.values()):
            return False
        for partition in self.cluster.assignments():
            state = self.cluster.state_of(partition)
            if state is None:
                return False
            for broker in self.cluster.brokers.values():
                info = broker.node.metadata.partition(partition)
                if info is None or info.leader != state["leader"]:
                    return False
                if info.leader_epoch != state["leader_epoch"] or list(info.isr) != state["isr"]:
                    return False
        return True

    def _producers_are_served(self) -> bool:
        """Where records were lost, a producer's sequence cannot go on: nothing is asked there."""
        return all(
            p.is_idle or p.partition in self.history.unclean or self._is_beyond_recall(p)
            for p in self.cluster.producers
        ) and all(
            p.is_idle or not self.history.unclean.isdisjoint(p.partitions) for p in self.cluster.own_producers
        )

    def _is_beyond_recall(self, producer: Producer) -> bool:
        """Its batch was written, forgotten in a restart (a snapshot keeps only a producer's last batch) and
        then removed by retention: no leader can recognize it, nor could Kafka's."""
        log = self._leader_log(producer.partition)
        if log is None or self.cluster.kind_of(producer.partition.topic) is not TopicKind.RETAINED:
            return False
        known = log.producers.get(producer.producer_id)
        if known is None or not producer.is_behind(known.last_sequence):
            return False
        there = {record.value for record in records_of(log)}
        return not any(value in there for value in producer.unanswered())

    def _check_groups(self) -> None:
        """All members of a group settle in one generation, and own everything together."""
        cluster = self.cluster
        if cluster.shape.members and not cluster.group.is_void:
            self._await_members(cluster.members, set(cluster.partitions()[:GROUP_PARTITIONS]), GROUP)
        if cluster.own_members and not cluster.own_group.is_void:
            self._await_members(
                cluster.own_members, {p for p in cluster.assignments() if p.topic == "topic-0"}, OWN_GROUP
            )

    def _await_members(
        self, members: Sequence[Member | OwnMember], wanted: set[TopicPartition], group: str
    ) -> None:
        for member in members:
            member.sleeps_until_us = 0
        self.cluster.await_(
            lambda: all(m.is_settled for m in members) and wanted <= set(chain(*(m.owned for m in members))),
            60 * SECOND,
            f"the members of {group} work in one generation and own everything",
        )

    def _check_given(self, logs: dict[TopicPartition, FinalLog]) -> None:
        """The group was given every record, whatever became of its members."""
        group = self.cluster.own_group
        if not self.cluster.own_members or group.is_void:
            return
        wanted = {
            partition: {found.offset for found in log.records}
            for partition, log in logs.items()
            if partition.topic == "topic-0" and partition not in self.history.unclean
        }
        self.cluster.await_(
            lambda: all(offsets <= group.given.get(each, set()) for each, offsets in wanted.items()),
            40 * SECOND,
            "the group on Ottla's own client was given every record",
        )

    def _check_churn(self) -> None:
        """Deleted topics leave nothing behind, neither in ZooKeeper nor on a disk."""
        churn = self.cluster.churn
        if churn is None:
            return
        churn.is_stopped = True
        self.cluster.await_(lambda: churn.is_done, 60 * SECOND, "topics can be deleted")
        self.cluster.await_(self._is_clear_of_churn, 30 * SECOND, "deleted topics left nothing behind")

    def _is_clear_of_churn(self) -> bool:
        names = self._znode_names(paths.TOPICS) + self._znode_names(paths.DELETE_TOPICS)
        if any(name.startswith(CHURNED) for name in names):
            return False
        for broker in self.cluster.brokers.values():
            if not broker.node.is_started:
                return False
            if any(name.topic.startswith(CHURNED) for name in broker.node.log_dirs.logs):
                return False
            if any(name.startswith(CHURNED) for name in broker.node.metadata.topics):
                return False
        return True

    def _znode_names(self, path: str) -> list[str]:
        node = self.cluster.zookeeper.tree.nodes.get(path)
        return sorted(node.children) if node is not None else []

    # -- logs --------------------------------------------------------------------------------

    def _replicas(self, name: TopicPartition) -> dict[int, Log]:
        brokers = self.cluster.brokers
        found = {number: brokers[number].node.partitions.find(*name) for number in self._assigned(name)}
        return {number: partition.log for number, partition in found.items() if partition is not None}

    def _assigned(self, name: TopicPartition) -> list[int]:
        return [
            number for number in self.cluster.assignments().get(name, []) if number in self.cluster.brokers
        ]

    def _replicas_end_equal(self) -> bool:
        """All replicas of all partitions are in sync, have told their leader so, and end where it ends.

        One that is not, or was elected into the ISR and has not been heard of since, may still hold a tail
        that it has to cut, however long that is.
        """
        for name in self.cluster.assignments():
            assigned, logs = self._assigned(name), self._replicas(name).values()
            in_sync = set((self.cluster.state_of(name) or {}).get("isr", ()))
            if len(logs) < len(assigned) or not in_sync.issuperset(assigned):
                return False
            led = self._leader_log(name)
            if (
                led is None
                or led.high_watermark < led.end_offset
                or len({log.end_offset for log in logs}) != 1
            ):
                return False
        return True

    def _leader_log(self, name: TopicPartition) -> Log | None:
        state = self.cluster.state_of(name)
        if state is None or state["leader"] < 0:
            return None
        partition = self.cluster.brokers[state["leader"]].node.partitions.find(*name)
        return partition.log if partition is not None else None

    def _consumers_are_done(self) -> bool:
        for consumer in self.cluster.readings():
            if consumer.partition in self.history.unclean:
                continue
            log = self._leader_log(consumer.partition)
            if log is None or consumer.position < log.end_offset:
                return False
        return True

    def _final_log(self, name: TopicPartition) -> FinalLog:
        log = self._leader_log(name)
        if log is None:
            raise Violation(f"{name} has no leader any more")
        kind = self.cluster.kind_of(name.topic)
        return FinalLog(kind, int(log.log_start_offset), records_of(log), self._loss_from(name))

    def _loss_from(self, name: TopicPartition) -> int | None:
        """The offset from which records may be gone, according to the receipts; 0 if one is missing."""
        if name not in self.history.unclean:
            return None
        epochs = [each.epoch for each in self.cluster.znodes.unclean if each.partition == name]
        if not epochs:
            return 0
        receipts, words = self._told_losses("loss receipt"), self._told_losses("unclean start")
        starts = [receipts.get((str(name), epoch)) for epoch in epochs]
        # The controller says where the new leader's log ended, and the new leader what of it may be its own.
        starts += [words[key] for epoch in epochs if (key := (str(name), epoch)) in words]
        # One that was replaced, did not know it and was killed does not know what was its own; those who cut
        # their logs to agree with it do.
        starts += [cut["lost"]["from"] for cut in self._told("log cut") if cut["partition"] == str(name)]
        return min((start if start is not None else 0 for start in starts), default=0)

    def _told_losses(self, kind: str) -> dict[tuple[str, int], int | None]:
        """The losses in the decisions topic: partition and epoch, and the first offset."""
        return {
            (told["partition"], told["leader_epoch"]): told["may_be_lost"]["from"]
            for told in self._told(kind)
        }

    def _told(self, kind: str) -> list[dict[str, Any]]:
        """The records of that kind in the decisions topic."""
        log = self._leader_log(TopicPartition(DECISIONS_TOPIC, 0))
        found: list[dict[str, Any]] = [
            json.loads(record.value) for record in (records_of(log) if log is not None else [])
        ]
        return [told for told in found if told["kind"] == kind]

    def _check_receipts(self) -> None:
        """Every unclean election is announced by the controller that made it, if it lives on."""
        wanted = [
            each
            for each in self.cluster.znodes.unclean
            if each.controller in self.cluster.brokers
            and self.cluster.brokers[each.controller].life == each.life
        ]
        if not wanted:
            return
        self.cluster.await_(
            lambda: {(str(e.partition), e.epoch) for e in wanted} <= set(self._told_losses("loss receipt")),
            40 * SECOND,
            "every unclean election has its receipt",
        )

    def _check_consumers(self, logs: dict[TopicPartition, FinalLog]) -> None:
        """Whoever read a topic from which nothing is removed has read the whole log, in its order."""
        for consumer in self.cluster.readings():
            log = logs[consumer.partition]
            if log.kind is not TopicKind.PLAIN or consumer.partition in self.history.unclean:
                continue
            if consumer.log != [(found.offset, found.value) for found in log.records]:
                raise Violation(f"{consumer.host} read something else than what {consumer.partition} holds")

    def check_replicas(self) -> None:
        """The replicas are the same, byte for byte, at a moment at which none is being written to.

        Decisions, and records of partitions with losses, may still come: compare between two of them.
        """
        self.cluster.await_(self._replicas_end_equal, 30 * SECOND, "followers hold what their leaders hold")
        for name in self.cluster.assignments():
            logs = self._replicas(name)
            if self.cluster.kind_of(name.topic) is TopicKind.COMPACTED:
                contents: dict[int, Any] = {n: newest(contents_of(log).records) for n, log in logs.items()}
            else:
                start = max(int(log.log_start_offset) for log in logs.values())
                contents = {number: bytes_of(log, start) for number, log in logs.items()}
            if any(each != contents[min(contents)] for each in contents.values()):
                sizes = {number: len(each) for number, each in contents.items()}
                raise Violation(f"replicas of {name} differ: {sizes}")


def _has_lost_a_directory(broker: SimBroker) -> bool:
    return broker.node.is_started and bool(broker.node.log_dirs.offline)
