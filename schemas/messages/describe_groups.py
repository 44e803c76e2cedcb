"""DescribeGroups (15): state, protocol and members of classic groups.

v1 throttle_time_ms; v3 authorized operations (KIP-430); v4 group_instance_id (KIP-345); v5 flexible;
v6 error_message, and GROUP_ID_NOT_FOUND for a group that does not exist (KIP-1043).

protocol_data, member_metadata and member_assignment are filled in for a Stable group only. An
authorized_operations bit field is -2**31 unless the request asks for it.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, bytes_, int16, int32, nullable_string, string


@message(api_key=ApiKey.DESCRIBE_GROUPS, versions=range(0, 7), flexible=5)
class DescribeGroupsRequest:
    groups: tuple[str, ...] = field(array(string))
    include_authorized_operations: bool = field(boolean, since=3)


@entity
class DescribedGroupMember:
    member_id: str = field(string)
    group_instance_id: str | None = field(nullable_string, since=4, default=None)
    client_id: str = field(string)
    client_host: str = field(string)
    member_metadata: bytes = field(bytes_)
    member_assignment: bytes = field(bytes_)


@entity
class DescribedGroup:
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, since=6, default=None)
    group_id: str = field(string)
    group_state: str = field(string)
    protocol_type: str = field(string)
    protocol_data: str = field(string)
    members: tuple[DescribedGroupMember, ...] = field(array(DescribedGroupMember))
    authorized_operations: int = field(int32, since=3, default=-(1 << 31))


@message(api_key=ApiKey.DESCRIBE_GROUPS, versions=range(0, 7), flexible=5)
class DescribeGroupsResponse:
    throttle_time_ms: int = field(int32, since=1)
    groups: tuple[DescribedGroup, ...] = field(array(DescribedGroup))
