"""Whether the brokers that may coordinate next would keep a prepared transaction (KIP-939).

An Apache broker of 3.9 would abort it in the end, and fences whoever resumed it: a coordinator that has such
a broker among the replicas of its partition makes no promise in its name.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.broker.metadata.image import MetadataChange, MetadataImage
from ottla.broker.peers.links import LinkLost, PeerLinks
from ottla.broker.runtime.identity import Identity
from ottla.model.ids import BrokerId, TopicPartition
from ottla.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.connection import SOFTWARE_NAME, SOFTWARE_VERSION
from ottla.wire.keys import ApiKey

LANE: Final = "two-phase-commit"
HELLO_VERSION: Final = 3
TWO_PHASE_VERSION: Final = 6
"""The InitProducerId that a broker advertises only if it keeps prepared transactions."""


class Successors:
    """Asks the live replicas of a partition which versions they speak; those that are fit are remembered."""

    def __init__(self, identity: Identity, links: PeerLinks, metadata: MetadataImage) -> None:
        self._identity = identity
        self._links = links
        self._metadata = metadata
        self._fit: set[BrokerId] = set()

    def on_metadata_changed(self, change: MetadataChange) -> None:
        """A broker may have come back as another kind."""
        if change.brokers_changed:
            self._fit.clear()

    def look(self, partition: TopicPartition, then: Callable[[list[BrokerId]], None]) -> None:
        """``then`` gets the live replicas that would not keep a prepared transaction.

        One that does not answer is passed over: it does not stand for election before it is back in sync.
        """
        asked = [each for each in self._others(partition) if each not in self._fit]
        if not asked:
            then([])
            return
        _Looking(self._fit, then, len(asked)).ask(self._links, asked)

    def _others(self, partition: TopicPartition) -> list[BrokerId]:
        info = self._metadata.partition(partition)
        replicas = info.replicas if info is not None else ()
        me = self._identity.broker_id
        return [each for each in replicas if each != me and self._metadata.is_alive(each)]


class _Looking:
    """One question to several brokers; the last answer ends it."""

    __slots__ = ("_fit", "_open", "_then", "_unfit")

    def __init__(self, fit: set[BrokerId], then: Callable[[list[BrokerId]], None], count: int) -> None:
        self._fit = fit
        self._then = then
        self._open = count
        self._unfit: list[BrokerId] = []

    def ask(self, links: PeerLinks, brokers: list[BrokerId]) -> None:
        hello = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
        )
        for broker in brokers:
            link = links.get(broker, LANE)
            link.request(hello, HELLO_VERSION, partial(self._answered, broker))

    def _answered(self, broker: BrokerId, answer: ApiVersionsResponse | LinkLost) -> None:
        if not isinstance(answer, LinkLost):
            highest = {row.api_key: row.max_version for row in answer.api_keys}
            if highest.get(ApiKey.INIT_PRODUCER_ID, 0) >= TWO_PHASE_VERSION:
                self._fit.add(broker)
            else:
                self._unfit.append(broker)
        self._open -= 1
        if not self._open:
            self._then(self._unfit)
