"""DescribeTransactions: state and partitions of transactions."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32, i64
from ottla.wire.keys import ApiKey


class DescribeTransactionsRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.DESCRIBE_TRANSACTIONS)

    transactional_ids: tuple[str, ...] = ()


class TopicData(Struct):
    topic: str = ""
    partitions: tuple[i32, ...] = ()


class TransactionState(Struct):
    error_code: i16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: i32 = 0
    transaction_start_time_ms: i64 = 0
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    topics: list[TopicData] = []


class DescribeTransactionsResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.DESCRIBE_TRANSACTIONS)

    throttle_time_ms: i32 = 0
    transaction_states: list[TransactionState] = []
