"""ListGroups (16): the groups that this broker coordinates.

v1 throttle_time_ms; v3 flexible; v4 states_filter and group_state (KIP-518); v5 types_filter and group_type
(KIP-848).

An empty filter matches every group.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, string


@message(api_key=ApiKey.LIST_GROUPS, versions=range(0, 6), flexible=3)
class ListGroupsRequest:
    states_filter: tuple[str, ...] = field(array(string), since=4)
    types_filter: tuple[str, ...] = field(array(string), since=5)


@entity
class ListedGroup:
    group_id: str = field(string)
    protocol_type: str = field(string)
    group_state: str = field(string, since=4)
    group_type: str = field(string, since=5)


@message(api_key=ApiKey.LIST_GROUPS, versions=range(0, 6), flexible=3)
class ListGroupsResponse:
    throttle_time_ms: int = field(int32, since=1)
    error_code: int = field(int16)
    groups: tuple[ListedGroup, ...] = field(array(ListedGroup))
