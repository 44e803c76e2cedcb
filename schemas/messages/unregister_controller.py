"""UnregisterController (94): forget a controller that is gone for good."""

from schemas.api_key import ApiKey
from schemas.message import field, message
from schemas.primitives import int16, int32, nullable_string


@message(api_key=ApiKey.UNREGISTER_CONTROLLER, versions=range(0, 1), flexible=0)
class UnregisterControllerRequest:
    controller_id: int = field(int32)


@message(api_key=ApiKey.UNREGISTER_CONTROLLER, versions=range(0, 1), flexible=0)
class UnregisterControllerResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
