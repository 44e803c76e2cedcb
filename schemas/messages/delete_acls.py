"""DeleteAcls (31): remove entries that match a filter from the access control lists (KIP-140).

v1 pattern types (KIP-290); v2 flexible; v3 users as resources. Kafka 4.0 removed v0.
"""

from collections.abc import Sequence

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int8, int16, int32, nullable_string, string


@entity
class DeleteAclsFilter:
    resource_type_filter: int = field(int8)
    resource_name_filter: str | None = field(nullable_string)
    pattern_type_filter: int = field(int8, default=3)
    principal_filter: str | None = field(nullable_string)
    host_filter: str | None = field(nullable_string)
    operation: int = field(int8)
    permission_type: int = field(int8)


@message(api_key=ApiKey.DELETE_ACLS, versions=range(1, 4), flexible=2)
class DeleteAclsRequest:
    filters: tuple[DeleteAclsFilter, ...] = field(array(DeleteAclsFilter))


@entity
class DeleteAclsMatchingAcl:
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    resource_type: int = field(int8)
    resource_name: str = field(string)
    pattern_type: int = field(int8, default=3)
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


@entity
class DeleteAclsFilterResult:
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    matching_acls: Sequence[DeleteAclsMatchingAcl] = field(array(DeleteAclsMatchingAcl))


@message(api_key=ApiKey.DELETE_ACLS, versions=range(1, 4), flexible=2)
class DeleteAclsResponse:
    throttle_time_ms: int = field(int32)
    filter_results: tuple[DeleteAclsFilterResult, ...] = field(array(DeleteAclsFilterResult))
