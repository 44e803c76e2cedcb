"""AlterClientQuotas (49): set and remove limits of users, clients and addresses (KIP-546).

v1 flexible. A null entity_name stands for the default of that type.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, entity_named, field, message
from schemas.primitives import array, boolean, float64, int16, int32, nullable_string, string


@entity
class EntityData:
    entity_type: str = field(string)
    entity_name: str | None = field(nullable_string)


@entity
class OpData:
    key: str = field(string)
    value: float = field(float64)
    remove: bool = field(boolean)


@entity_named("EntryData")
class RequestEntryData:
    entity: tuple[EntityData, ...] = field(array(EntityData))
    ops: tuple[OpData, ...] = field(array(OpData))


@message(api_key=ApiKey.ALTER_CLIENT_QUOTAS, versions=range(0, 2), flexible=1)
class AlterClientQuotasRequest:
    entries: tuple[RequestEntryData, ...] = field(array(RequestEntryData))
    validate_only: bool = field(boolean)


@entity
class EntryData:
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    entity: tuple[EntityData, ...] = field(array(EntityData))


@message(api_key=ApiKey.ALTER_CLIENT_QUOTAS, versions=range(0, 2), flexible=1)
class AlterClientQuotasResponse:
    throttle_time_ms: int = field(int32)
    entries: tuple[EntryData, ...] = field(array(EntryData))
