"""DeleteGroups (42): delete empty groups with their offsets (KIP-229).

v2 flexible; v3 error_message.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, nullable_string, string


@message(api_key=ApiKey.DELETE_GROUPS, versions=range(0, 4), flexible=2)
class DeleteGroupsRequest:
    groups_names: tuple[str, ...] = field(array(string))


@entity
class DeletableGroupResult:
    group_id: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, since=3, default=None)


@message(api_key=ApiKey.DELETE_GROUPS, versions=range(0, 4), flexible=2)
class DeleteGroupsResponse:
    throttle_time_ms: int = field(int32)
    results: tuple[DeletableGroupResult, ...] = field(array(DeletableGroupResult))
