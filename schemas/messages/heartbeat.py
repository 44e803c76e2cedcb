"""Heartbeat (12): a member shows that it is alive, and the answer announces a rebalance.

v1 throttle_time_ms; v3 group_instance_id (KIP-345); v4 flexible.
"""

from schemas.api_key import ApiKey
from schemas.message import field, message
from schemas.primitives import int16, int32, nullable_string, string


@message(api_key=ApiKey.HEARTBEAT, versions=range(0, 5), flexible=4)
class HeartbeatRequest:
    group_id: str = field(string)
    generation_id: int = field(int32)
    member_id: str = field(string)
    group_instance_id: str | None = field(nullable_string, since=3, default=None)


@message(api_key=ApiKey.HEARTBEAT, versions=range(0, 5), flexible=4)
class HeartbeatResponse:
    throttle_time_ms: int = field(int32, since=1)
    error_code: int = field(int16)
