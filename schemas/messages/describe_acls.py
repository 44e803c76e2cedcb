"""DescribeAcls (29): the entries of access control lists that match a filter (KIP-140).

v1 pattern types (KIP-290); v2 flexible; v3 users as resources. Kafka 4.0 removed v0. A null text in the
filter matches anything. pattern_type: 1 any, 2 match, 3 literal, 4 prefixed.
"""

from collections.abc import Sequence

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int8, int16, int32, nullable_string, string


@message(api_key=ApiKey.DESCRIBE_ACLS, versions=range(1, 4), flexible=2)
class DescribeAclsRequest:
    resource_type_filter: int = field(int8)
    resource_name_filter: str | None = field(nullable_string)
    pattern_type_filter: int = field(int8, default=3)
    principal_filter: str | None = field(nullable_string)
    host_filter: str | None = field(nullable_string)
    operation: int = field(int8)
    permission_type: int = field(int8)


@entity
class AclDescription:
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


@entity
class DescribeAclsResource:
    resource_type: int = field(int8)
    resource_name: str = field(string)
    pattern_type: int = field(int8, default=3)
    acls: Sequence[AclDescription] = field(array(AclDescription))


@message(api_key=ApiKey.DESCRIBE_ACLS, versions=range(1, 4), flexible=2)
class DescribeAclsResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    resources: tuple[DescribeAclsResource, ...] = field(array(DescribeAclsResource))
