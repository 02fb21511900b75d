"""DescribeTransactions: state and partitions of transactions."""

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64


class DescribeTransactionsRequest(Request):
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
    throttle_time_ms: i32 = 0
    transaction_states: list[TransactionState] = []
