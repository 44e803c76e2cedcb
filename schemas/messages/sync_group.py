"""SyncGroup (14): the leader sends the assignment, every member gets its part.

v1 throttle_time_ms; v3 group_instance_id (KIP-345); v4 flexible; v5 protocol_type and protocol_name, so that
either side can notice a mismatch (KIP-559).
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, bytes_, int16, int32, nullable_string, string


@entity
class SyncGroupRequestAssignment:
    member_id: str = field(string)
    assignment: bytes = field(bytes_)


@message(api_key=ApiKey.SYNC_GROUP, versions=range(0, 6), flexible=4)
class SyncGroupRequest:
    group_id: str = field(string)
    generation_id: int = field(int32)
    member_id: str = field(string)
    group_instance_id: str | None = field(nullable_string, since=3, default=None)
    protocol_type: str | None = field(nullable_string, since=5, default=None)
    protocol_name: str | None = field(nullable_string, since=5, default=None)
    assignments: tuple[SyncGroupRequestAssignment, ...] = field(array(SyncGroupRequestAssignment))


@message(api_key=ApiKey.SYNC_GROUP, versions=range(0, 6), flexible=4)
class SyncGroupResponse:
    throttle_time_ms: int = field(int32, since=1)
    error_code: int = field(int16)
    protocol_type: str | None = field(nullable_string, since=5, default=None)
    protocol_name: str | None = field(nullable_string, since=5, default=None)
    assignment: bytes = field(bytes_)
