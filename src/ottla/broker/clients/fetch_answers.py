"""What is answered to a Fetch: the rows of partitions, and the plain answer in one step.

Records of one partition, and nothing wrong: that answer the codec encodes once a topic and version; from then
on session, offsets and records are put in their places. Every other answer is encoded as it is.
"""

from functools import lru_cache
from struct import Struct

from ottla.broker.clients.fetch_session import FetchSession
from ottla.broker.clients.request import Request
from ottla.broker.outputs import Buffer
from ottla.broker.replicas.readers import FetchEntry, FetchReader
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import TopicId
from ottla.storage.log.log import Log
from ottla.storage.segment.log_slice import LogSlice
from ottla.wire.apis.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from ottla.wire.headers import frame_response
from ottla.wire.primitives import INT32, uvarint

PLAIN_SINCE = 11
"""Older answers lack sessions, or the preferred replica."""
PATTERNS_MAX = 1024
FORBIDDEN = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
FOUND_BEFORE_READING = (
    int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    int(ErrorCode.UNKNOWN_TOPIC_ID),
    FORBIDDEN,
)
_FOUND_WITHOUT_READING = (*FOUND_BEFORE_READING, int(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE))
_START = Struct(">ii")
_THROTTLE_AND_ERROR_BYTES = 6
_SESSION_BYTES = 4
_ROW = Struct(">ihqqq")
"""Partition, error, high watermark, last stable offset, log start."""
_LENGTH_AND_TAGS = 4
"""How many bytes follow the row in an answer without records, in every version."""
_NO_TAGS = b"\0\0\0"


class PlainAnswer:
    """The answers to one version of Fetch that bring records of one topic's partitions."""

    __slots__ = ("_behind", "_between", "_is_flexible", "_pack", "_session", "_size")

    def __init__(self, version: int, topic: str, topic_id: TopicId) -> None:
        self._is_flexible = FetchResponse.spec.is_flexible(version)
        row = PartitionData(aborted_transactions=None, records=b"")
        response = FetchResponse(responses=[FetchableTopicResponse(topic, topic_id, [row])])
        pattern = b"".join(frame_response(response, version, 0))[:-_LENGTH_AND_TAGS]
        session_at = _START.size + self._is_flexible + _THROTTLE_AND_ERROR_BYTES
        nothing_aborted_and_preferred = (1 if self._is_flexible else 4) + 4
        row_at = len(pattern) - nothing_aborted_and_preferred - _ROW.size
        self._session = pattern[_START.size : session_at]
        self._between = pattern[session_at + _SESSION_BYTES : row_at]
        self._behind = pattern[row_at + _ROW.size :]
        self._size = len(pattern) - 4
        self._pack = Struct(
            f"{_START.format}{len(self._session)}si{len(self._between)}s{_ROW.format[1:]}{len(self._behind)}s"
        ).pack

    def encoded(
        self,
        correlation_id: int,
        session_id: int,
        index: int,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        records: Buffer,
    ) -> list[Buffer]:
        """The whole frame in parts; the records are one of them."""
        count = len(records)
        length = uvarint(count + 1) if self._is_flexible else INT32.pack(count)
        tail = len(_NO_TAGS) if self._is_flexible else 0
        head = self._pack(
            self._size + len(length) + count + tail,
            correlation_id,
            self._session,
            session_id,
            self._between,
            index,
            0,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            self._behind,
        )
        return [head + length, records, _NO_TAGS] if tail else [head + length, records]


_pattern = lru_cache(PATTERNS_MAX)(PlainAnswer)
"""The pattern for a version and a topic, by name and id."""


def plain_answer(request: Request, reader: FetchReader, entry: FetchEntry) -> list[Buffer] | None:
    """The frame that brings an entry's records, if nothing else is to be said of it."""
    partition, records = entry.partition, entry.records
    if records is None or entry.error or partition is None or request.api_version < PLAIN_SINCE:
        return None
    try:
        content = records.buffer()
    except LogDirectoryFailed:
        return None
    log = partition.log
    return _pattern(request.api_version, entry.topic, entry.topic_id).encoded(
        request.correlation_id,
        reader.id if isinstance(reader, FetchSession) else 0,
        entry.index,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        content,
    )


def row(entry: FetchEntry, log: Log) -> PartitionData:
    """What a reader that may read hears of a partition, before what readers of its kind hear besides."""
    records = entry.records
    data = PartitionData(
        partition_index=entry.index,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=None,
        records=b"" if records is None else records.buffer(),
    )
    if entry.diverging is not None:
        data.diverging_epoch = EpochEndOffset(entry.diverging.epoch, entry.diverging.end_offset)
    return data


def empty_row(entry: FetchEntry, error: int) -> PartitionData:
    """The row of a partition that cannot be read; its topic is unknown, or something is wrong with it."""
    return PartitionData(
        partition_index=entry.index,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=[] if error in _FOUND_WITHOUT_READING else None,
        records=b"",
    )


def aborted_in(records: LogSlice, fetch_offset: int, log: Log) -> list[AbortedTransaction]:
    """The aborted transactions that a reader of committed records must leave out."""
    return [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in log.aborted_transactions(fetch_offset, records, log.last_stable_offset)
    ]
