"""DescribeClientQuotas (48): the quotas of users, clients and addresses (KIP-546).

v1 flexible. match_type: 0 exactly this name, 1 the default, 2 any name.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import (
    array,
    boolean,
    float64,
    int8,
    int16,
    int32,
    nullable_array,
    nullable_string,
    string,
)


@entity
class ComponentData:
    entity_type: str = field(string)
    match_type: int = field(int8)
    match: str | None = field(nullable_string)


@message(api_key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=range(0, 2), flexible=1)
class DescribeClientQuotasRequest:
    components: tuple[ComponentData, ...] = field(array(ComponentData))
    strict: bool = field(boolean)


@entity
class EntityData:
    entity_type: str = field(string)
    entity_name: str | None = field(nullable_string)


@entity
class ValueData:
    key: str = field(string)
    value: float = field(float64)


@entity
class EntryData:
    entity: tuple[EntityData, ...] = field(array(EntityData))
    values: tuple[ValueData, ...] = field(array(ValueData))


@message(api_key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=range(0, 2), flexible=1)
class DescribeClientQuotasResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    entries: tuple[EntryData, ...] | None = field(nullable_array(EntryData))
