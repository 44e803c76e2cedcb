"""CreateAcls (30): add entries to the access control lists (KIP-140).

v1 pattern types (KIP-290); v2 flexible; v3 users as resources. Kafka 4.0 removed v0.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int8, int16, int32, nullable_string, string


@entity
class AclCreation:
    resource_type: int = field(int8)
    resource_name: str = field(string)
    resource_pattern_type: int = field(int8, default=3)
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


@message(api_key=ApiKey.CREATE_ACLS, versions=range(1, 4), flexible=2)
class CreateAclsRequest:
    creations: tuple[AclCreation, ...] = field(array(AclCreation))


@entity
class AclCreationResult:
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)


@message(api_key=ApiKey.CREATE_ACLS, versions=range(1, 4), flexible=2)
class CreateAclsResponse:
    throttle_time_ms: int = field(int32)
    results: tuple[AclCreationResult, ...] = field(array(AclCreationResult))
