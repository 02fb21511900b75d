"""ListTransactions: the transactions that a broker coordinates."""

from typing import Annotated, ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32, i64, not_ignorable, since
from ottla.wire.keys import ApiKey


class ListTransactionsRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 1), flexible=0, api_key=ApiKey.LIST_TRANSACTIONS)

    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[i64, ...] = ()
    duration_filter: Annotated[i64, since(1), not_ignorable] = -1


class TransactionState(Struct):
    transactional_id: str = ""
    producer_id: i64 = 0
    transaction_state: str = ""


class ListTransactionsResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 1), flexible=0, api_key=ApiKey.LIST_TRANSACTIONS)

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: list[TransactionState] = []
