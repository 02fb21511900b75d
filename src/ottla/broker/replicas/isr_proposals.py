"""ISR changes that leaders propose to the controller: one AlterPartition at a time."""

import logging
from typing import Protocol, TypeAlias

from ottla.broker.metadata.image import MetadataImage
from ottla.broker.peers.links import LinkLost, PeerLinks
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.timers import Timer
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER, BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.replication.effects import ProposeIsr
from ottla.replication.events import IsrChangeAnswered
from ottla.wire.apis.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)

log = logging.getLogger(__name__)

LANE = "alter-partition"
VERSION = 3
RETRY_MS = 50
_NOT_CONTROLLER = int(ErrorCode.NOT_CONTROLLER)


class ProposingPartition(Protocol):
    """A partition whose leader proposes another ISR."""

    leader_epoch: LeaderEpoch

    @property
    def name(self) -> TopicPartition: ...

    @property
    def topic_id(self) -> TopicId: ...

    @property
    def leader(self) -> object | None: ...

    def isr_change_answered(self, answer: IsrChangeAnswered) -> None: ...


Proposals: TypeAlias = dict[TopicPartition, tuple[ProposingPartition, ProposeIsr]]


class IsrProposals:
    """At most one proposal a partition, at most one request in flight, which carries all that wait.

    The request has no time limit of its own: while a change is pending the leader counts both ISRs, which is
    safe however long the controller takes.
    """

    def __init__(self, runtime: Runtime, links: PeerLinks, metadata: MetadataImage) -> None:
        self._runtime = runtime
        self._links = links
        self._metadata = metadata
        self._unsent: Proposals = {}
        self._in_flight: Proposals | None = None
        self._asked: BrokerId = NO_BROKER
        """Who got the request in flight."""
        self._retry: Timer | None = None
        self._is_stopped = False

    def propose(self, partition: ProposingPartition, proposal: ProposeIsr) -> None:
        """Take a leader's proposal; a newer one of the same partition replaces it."""
        log.debug(
            "isr proposed partition=%s epoch=%d isr=%s reason=%s",
            partition.name,
            proposal.leader_epoch,
            ",".join(map(str, proposal.isr)),
            proposal.reason,
        )
        self._unsent[partition.name] = (partition, proposal)
        self._send_soon(0)

    def controller_changed(self) -> None:
        """The metadata name another controller: do not wait for an answer of the old one."""
        if self._in_flight is not None and self._asked != self._metadata.controller:
            self._links.drop(self._links.get(self._asked, LANE), "another broker is controller")
        elif self._unsent:
            self._send_soon(0)

    def stop(self) -> None:
        """The broker stops; the controller removes it from the ISRs."""
        self._is_stopped = True
        self._unsent = {}

    def _send_soon(self, delay_ms: int) -> None:
        if self._in_flight is None and (self._retry is None or not self._retry.is_pending):
            self._retry = self._runtime.timers.after(delay_ms, self._send)

    def _send(self) -> None:
        if self._in_flight is not None or not self._unsent or self._is_stopped:
            return
        self._unsent = {
            name: (partition, proposal)
            for name, (partition, proposal) in self._unsent.items()
            if partition.leader is not None and partition.leader_epoch == proposal.leader_epoch
        }
        controller = self._metadata.controller
        if controller == NO_BROKER:
            self._send_soon(RETRY_MS)
            return
        if not self._unsent:
            return
        self._in_flight, self._unsent = self._unsent, {}
        self._asked = controller
        link = self._links.get(
            controller, LANE, client_id=str(self._runtime.identity.broker_id), negotiates=True
        )
        link.request(
            self._request(self._in_flight), VERSION, lambda answer: self._answered(controller, answer)
        )

    def _request(self, proposals: Proposals) -> AlterPartitionRequest:
        topics: dict[TopicId, RequestTopicData] = {}
        for partition, proposal in proposals.values():
            topic = topics.get(partition.topic_id)
            if topic is None:
                topic = topics[partition.topic_id] = RequestTopicData(
                    topic_name=partition.name.topic, topic_id=partition.topic_id, partitions=[]
                )
            topic.partitions.append(
                RequestPartitionData(
                    partition_index=partition.name.partition,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=member.broker, broker_epoch=member.broker_epoch)
                        for member in proposal.members
                    ],
                    leader_recovery_state=0,
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._runtime.identity.broker_id,
            broker_epoch=self._runtime.identity.broker_epoch,
            topics=list(topics.values()),
        )

    def _answered(self, controller: BrokerId, answer: AlterPartitionResponse | LinkLost) -> None:
        asked, self._in_flight = self._in_flight, None
        if asked is None or self._is_stopped:
            return
        if isinstance(answer, LinkLost) or answer.error_code or _denies_being_controller(answer):
            if isinstance(answer, AlterPartitionResponse):
                self._leave_if_deposed(controller, answer)
            self._unsent = {**asked, **self._unsent}
            self._send_soon(RETRY_MS)
            return
        answers = {
            (TopicId(topic.topic_id), each.partition_index): each
            for topic in answer.topics
            for each in topic.partitions
        }
        for name, (partition, proposal) in asked.items():
            found = answers.get((partition.topic_id, name.partition))
            if found is None:
                self._unsent.setdefault(name, (partition, proposal))
            else:
                partition.isr_change_answered(_as_event(proposal, found))
        log.info("isr changes controller=%d partitions=%d first=%s", controller, len(asked), _first_of(asked))
        if self._unsent:
            self._send_soon(0)

    def _leave_if_deposed(self, controller: BrokerId, answer: AlterPartitionResponse) -> None:
        if answer.error_code == _NOT_CONTROLLER or _denies_being_controller(answer):
            link = self._links.get(controller, LANE)
            self._links.drop(link, "it is not the controller")
        log.info("isr change not taken controller=%d error=%d", controller, answer.error_code)


def _first_of(asked: Proposals) -> str:
    """One of them as an example; level DEBUG logs each."""
    name, (_, proposal) = next(iter(asked.items()))
    isr = ",".join(map(str, proposal.isr))
    return f"{name} epoch={proposal.leader_epoch} isr={isr} reason={proposal.reason}"


def _denies_being_controller(answer: AlterPartitionResponse) -> bool:
    return any(each.error_code == _NOT_CONTROLLER for topic in answer.topics for each in topic.partitions)


def _as_event(proposal: ProposeIsr, found: ResponsePartitionData) -> IsrChangeAnswered:
    return IsrChangeAnswered(
        proposed_in=proposal.leader_epoch,
        change=proposal.change,
        error=ErrorCode(found.error_code),
        leader_epoch=LeaderEpoch(found.leader_epoch),
        partition_epoch=found.partition_epoch,
        isr=tuple(map(BrokerId, found.isr)),
    )
