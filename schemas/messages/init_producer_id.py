"""InitProducerId (22): a producer id and epoch for an idempotent or transactional producer.

v2 flexible; v3 producer_id and producer_epoch, to go on after an INVALID_PRODUCER_EPOCH (KIP-360);
v4 PRODUCER_FENCED (KIP-588); v5 TRANSACTION_ABORTABLE (KIP-890). v6 (two-phase commit, KIP-939) is not a
stable version in Kafka 4.2.
"""

from schemas.api_key import ApiKey
from schemas.message import field, message
from schemas.primitives import int16, int32, int64, nullable_string


@message(api_key=ApiKey.INIT_PRODUCER_ID, versions=range(0, 6), flexible=2)
class InitProducerIdRequest:
    transactional_id: str | None = field(nullable_string)
    transaction_timeout_ms: int = field(int32)
    producer_id: int = field(int64, since=3, default=-1)
    producer_epoch: int = field(int16, since=3, default=-1)


@message(api_key=ApiKey.INIT_PRODUCER_ID, versions=range(0, 6), flexible=2)
class InitProducerIdResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    producer_id: int = field(int64, default=-1)
    producer_epoch: int = field(int16)
