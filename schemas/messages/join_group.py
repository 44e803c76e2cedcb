"""JoinGroup (11): become a member, and take part in a rebalance.

v1 rebalance_timeout_ms (KIP-62); v2 throttle_time_ms; v4 MEMBER_ID_REQUIRED (KIP-394); v5 group_instance_id,
for static members (KIP-345); v6 flexible; v7 protocol_type in the response, protocol_name may be null
(KIP-559); v8 reason (KIP-800); v9 skip_assignment (KIP-814).

A v0 request has no rebalance timeout; its session timeout counts instead. Only the response to the leader
lists the members.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, bytes_, int16, int32, nullable_string, string


@entity
class JoinGroupRequestProtocol:
    name: str = field(string)
    metadata: bytes = field(bytes_)


@message(api_key=ApiKey.JOIN_GROUP, versions=range(0, 10), flexible=6)
class JoinGroupRequest:
    group_id: str = field(string)
    session_timeout_ms: int = field(int32)
    rebalance_timeout_ms: int = field(int32, since=1, default=-1)
    member_id: str = field(string)
    group_instance_id: str | None = field(nullable_string, since=5, default=None)
    protocol_type: str = field(string)
    protocols: tuple[JoinGroupRequestProtocol, ...] = field(array(JoinGroupRequestProtocol))
    reason: str | None = field(nullable_string, since=8, default=None)


@entity
class JoinGroupResponseMember:
    member_id: str = field(string)
    group_instance_id: str | None = field(nullable_string, since=5, default=None)
    metadata: bytes = field(bytes_)


@message(api_key=ApiKey.JOIN_GROUP, versions=range(0, 10), flexible=6)
class JoinGroupResponse:
    throttle_time_ms: int = field(int32, since=2)
    error_code: int = field(int16)
    generation_id: int = field(int32, default=-1)
    protocol_type: str | None = field(nullable_string, since=7, default=None)
    protocol_name: str | None = field(string, nullable_since=7)
    leader: str = field(string)
    skip_assignment: bool = field(boolean, since=9)
    member_id: str = field(string)
    members: tuple[JoinGroupResponseMember, ...] = field(array(JoinGroupResponseMember))
