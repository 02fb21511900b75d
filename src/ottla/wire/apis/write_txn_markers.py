"""WriteTxnMarkers: the transaction coordinator has the outcome written into the logs."""

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64


class WritableTxnMarkerTopic(Struct):
    name: str = ""
    partition_indexes: tuple[i32, ...] = ()


class WritableTxnMarker(Struct):
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: i32 = 0


class WriteTxnMarkersRequest(Request):
    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: i32 = 0
    error_code: i16 = 0


class WritableTxnMarkerTopicResult(Struct):
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


class WritableTxnMarkerResult(Struct):
    producer_id: i64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


class WriteTxnMarkersResponse(Response):
    markers: list[WritableTxnMarkerResult] = []
