"""ListTransactions: the transactions that a broker coordinates."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64, not_ignorable, since


class ListTransactionsRequest(Request):
    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[i64, ...] = ()
    duration_filter: Annotated[i64, since(1), not_ignorable] = -1


class TransactionState(Struct):
    transactional_id: str = ""
    producer_id: i64 = 0
    transaction_state: str = ""


class ListTransactionsResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: list[TransactionState] = []
