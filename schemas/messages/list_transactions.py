"""ListTransactions (66): the transactional ids that a coordinator knows (KIP-664).

v1 duration_filter (KIP-994); v2 transactional_id_pattern (KIP-1152).
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, int64, nullable_string, string


@message(api_key=ApiKey.LIST_TRANSACTIONS, versions=range(0, 3), flexible=0)
class ListTransactionsRequest:
    state_filters: tuple[str, ...] = field(array(string))
    producer_id_filters: tuple[int, ...] = field(array(int64))
    duration_filter: int = field(int64, since=1, default=-1)
    transactional_id_pattern: str | None = field(nullable_string, since=2, default=None)


@entity
class TransactionState:
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    transaction_state: str = field(string)


@message(api_key=ApiKey.LIST_TRANSACTIONS, versions=range(0, 3), flexible=0)
class ListTransactionsResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    unknown_state_filters: tuple[str, ...] = field(array(string))
    transaction_states: tuple[TransactionState, ...] = field(array(TransactionState))
