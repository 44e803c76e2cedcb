"""AddOffsetsToTxn (25): add the offsets of a group to a transaction (KIP-98).

v2 PRODUCER_FENCED (KIP-588); v3 flexible; v4 TRANSACTION_ABORTABLE (KIP-890).
"""

from schemas.api_key import ApiKey
from schemas.message import field, message
from schemas.primitives import int16, int32, int64, string


@message(api_key=ApiKey.ADD_OFFSETS_TO_TXN, versions=range(0, 5), flexible=3)
class AddOffsetsToTxnRequest:
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    group_id: str = field(string)


@message(api_key=ApiKey.ADD_OFFSETS_TO_TXN, versions=range(0, 5), flexible=3)
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
