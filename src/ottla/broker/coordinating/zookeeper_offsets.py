"""Version 0 of OffsetCommit and OffsetFetch: offsets in ZooKeeper, as the first consumers kept them."""

import re
from collections.abc import Iterable, Mapping

from ottla.broker.runtime.tasks import Steps, persistently
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.znodes import paths
from ottla.zookeeper.ops import ANY_VERSION, Create, Data, Failed, GetData, SetData, ZkCode

INT64_MAX = 2**63 - 1
_NUMBER = re.compile(rb"[+-]?[0-9]{1,40}")


def commit(group_id: str, offsets: Mapping[TopicPartition, int]) -> Steps[dict[TopicPartition, ErrorCode]]:
    """Write each offset to its znode, and create missing parents."""
    codes: dict[TopicPartition, ErrorCode] = {}
    for tp, offset in offsets.items():
        path = paths.consumer_offset(group_id, tp)
        if not paths.is_valid(path):
            codes[tp] = ErrorCode.UNKNOWN_SERVER_ERROR
            continue
        written = yield from persistently(SetData(path, b"%d" % offset, ANY_VERSION))
        if isinstance(written, Failed) and written.code is ZkCode.NO_NODE:
            for parent in paths.parents(path):
                yield from persistently(Create(parent, b""))
            yield from persistently(Create(path, b""))
            written = yield from persistently(SetData(path, b"%d" % offset, ANY_VERSION))
        codes[tp] = ErrorCode.UNKNOWN_SERVER_ERROR if isinstance(written, Failed) else ErrorCode.NONE
    return codes


def fetch(
    group_id: str, partitions: Iterable[TopicPartition]
) -> Steps[dict[TopicPartition, int | ErrorCode]]:
    """The offset of each partition, or an error code."""
    found: dict[TopicPartition, int | ErrorCode] = {}
    for tp in partitions:
        path = paths.consumer_offset(group_id, tp)
        if paths.is_valid(path):
            found[tp] = _offset_of((yield from persistently(GetData(path))))
        else:
            found[tp] = ErrorCode.UNKNOWN_SERVER_ERROR
    return found


def _offset_of(stored: Data | Failed) -> int | ErrorCode:
    if isinstance(stored, Failed):
        is_missing = stored.code is ZkCode.NO_NODE
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_missing else ErrorCode.UNKNOWN_SERVER_ERROR
    text = stored.data or b""
    is_number = _NUMBER.fullmatch(text) is not None
    if not is_number or not -INT64_MAX - 1 <= int(text) <= INT64_MAX:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return int(text)
