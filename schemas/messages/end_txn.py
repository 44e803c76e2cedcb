"""EndTxn (26): commit or abort a transaction (KIP-98).

v2 PRODUCER_FENCED (KIP-588); v3 flexible; v4 TRANSACTION_ABORTABLE (KIP-890); v5 a new epoch for each
transaction, answered in producer_id and producer_epoch (KIP-890).
"""

from schemas.api_key import ApiKey
from schemas.message import field, message
from schemas.primitives import boolean, int16, int32, int64, string


@message(api_key=ApiKey.END_TXN, versions=range(0, 6), flexible=3)
class EndTxnRequest:
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    committed: bool = field(boolean)


@message(api_key=ApiKey.END_TXN, versions=range(0, 6), flexible=3)
class EndTxnResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    producer_id: int = field(int64, since=5, default=-1)
    producer_epoch: int = field(int16, since=5, default=-1)
