"""LeaveGroup (13): members give up their membership.

v1 throttle_time_ms; v3 many members in one request, each by member id or group instance id (KIP-345);
v4 flexible; v5 reason (KIP-800).
"""

from collections.abc import Sequence

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, nullable_string, string


@entity
class MemberIdentity:
    member_id: str = field(string)
    group_instance_id: str | None = field(nullable_string, default=None)
    reason: str | None = field(nullable_string, since=5, default=None)


@message(api_key=ApiKey.LEAVE_GROUP, versions=range(0, 6), flexible=4)
class LeaveGroupRequest:
    group_id: str = field(string)
    member_id: str = field(string, until=2)
    members: tuple[MemberIdentity, ...] = field(array(MemberIdentity), since=3)


@entity
class MemberResponse:
    member_id: str = field(string)
    group_instance_id: str | None = field(nullable_string)
    error_code: int = field(int16)


@message(api_key=ApiKey.LEAVE_GROUP, versions=range(0, 6), flexible=4)
class LeaveGroupResponse:
    throttle_time_ms: int = field(int32, since=1)
    error_code: int = field(int16)
    members: Sequence[MemberResponse] = field(array(MemberResponse), since=3)
