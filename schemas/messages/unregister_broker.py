"""UnregisterBroker (64): forget a broker that is gone for good (KIP-500)."""

from schemas.api_key import ApiKey
from schemas.message import field, message
from schemas.primitives import int16, int32, nullable_string


@message(api_key=ApiKey.UNREGISTER_BROKER, versions=range(0, 1), flexible=0)
class UnregisterBrokerRequest:
    broker_id: int = field(int32)


@message(api_key=ApiKey.UNREGISTER_BROKER, versions=range(0, 1), flexible=0)
class UnregisterBrokerResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
