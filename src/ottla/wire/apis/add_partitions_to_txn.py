"""AddPartitionsToTxn: partitions join a transaction, or are found in it."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64, not_ignorable, since, until


class AddPartitionsToTxnTopic(Struct):
    name: str = ""
    partitions: tuple[i32, ...] = ()


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = []


class AddPartitionsToTxnRequest(Request):
    transactions: Annotated[list[AddPartitionsToTxnTransaction], since(4), not_ignorable] = []
    v3_and_below_transactional_id: Annotated[str, until(3), not_ignorable] = ""
    v3_and_below_producer_id: Annotated[i64, until(3), not_ignorable] = 0
    v3_and_below_producer_epoch: Annotated[i16, until(3), not_ignorable] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], until(3), not_ignorable] = []


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: i32 = 0
    partition_error_code: i16 = 0


class AddPartitionsToTxnTopicResult(Struct):
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


class AddPartitionsToTxnResult(Struct):
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = []


class AddPartitionsToTxnResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(4)] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], since(4)] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], until(3)] = []
