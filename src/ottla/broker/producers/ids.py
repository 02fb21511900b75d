"""Producer ids, handed out from blocks that the controller allocates."""

import logging

from ottla.broker.metadata.image import MetadataImage
from ottla.broker.peers.links import LinkLost, PeerLinks
from ottla.broker.runtime.identity import Identity
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER
from ottla.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

log = logging.getLogger(__name__)

PREFETCH_AT = 0.90
"""The next block is asked for when so much of the present one is used."""
LANE = "producer-ids"


class ProducerIds:
    """One block in use and one fetched ahead. Nothing is asked for before somebody wants an id."""

    __slots__ = ("_block", "_identity", "_is_asking", "_links", "_metadata", "_next_block", "_next_id")

    def __init__(self, identity: Identity, links: PeerLinks, metadata: MetadataImage) -> None:
        self._identity = identity
        self._links = links
        self._metadata = metadata
        self._block: range = range(0)
        self._next_block: range | None = None
        self._next_id = 0
        self._is_asking = False

    def take(self) -> int | None:
        """A producer id that nobody had before; None while a block is on its way."""
        if self._next_id >= self._block.stop:
            if self._next_block is None:
                self._ask()
                return None
            self._block, self._next_block = self._next_block, None
            self._next_id = self._block.start
        taken = self._next_id
        self._next_id += 1
        used = self._next_id - self._block.start
        if self._next_block is None and used >= len(self._block) * PREFETCH_AT:
            self._ask()
        return taken

    def _ask(self) -> None:
        controller = self._metadata.controller
        if self._is_asking or controller == NO_BROKER:
            return
        self._is_asking = True
        link = self._links.get(controller, LANE, negotiates=True)
        request = AllocateProducerIdsRequest(
            broker_id=self._identity.broker_id, broker_epoch=self._identity.broker_epoch
        )
        link.request(request, 0, self._answered)

    def _answered(self, response: AllocateProducerIdsResponse | LinkLost) -> None:
        self._is_asking = False
        if isinstance(response, LinkLost):
            log.warning("no producer ids reason=%s", response.reason)
        elif response.error_code != ErrorCode.NONE:
            log.warning("no producer ids error=%s", ErrorCode(response.error_code).name)
        elif response.producer_id_start < self._block.stop:
            log.error("producer ids given twice start=%d", response.producer_id_start)
        else:
            start = response.producer_id_start
            self._next_block = range(start, start + response.producer_id_len)
