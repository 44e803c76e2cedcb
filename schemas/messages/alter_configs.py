"""AlterConfigs (33): replace all configs of topics and brokers (KIP-133).

v2 flexible.
"""

from collections.abc import Sequence

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int8, int16, int32, nullable_string, string


@entity
class AlterableConfig:
    name: str = field(string)
    value: str | None = field(nullable_string)


@entity
class AlterConfigsResource:
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: tuple[AlterableConfig, ...] = field(array(AlterableConfig))


@message(api_key=ApiKey.ALTER_CONFIGS, versions=range(0, 3), flexible=2)
class AlterConfigsRequest:
    resources: tuple[AlterConfigsResource, ...] = field(array(AlterConfigsResource))
    validate_only: bool = field(boolean)


@entity
class AlterConfigsResourceResponse:
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    resource_type: int = field(int8)
    resource_name: str = field(string)


@message(api_key=ApiKey.ALTER_CONFIGS, versions=range(0, 3), flexible=2)
class AlterConfigsResponse:
    throttle_time_ms: int = field(int32)
    responses: Sequence[AlterConfigsResourceResponse] = field(array(AlterConfigsResourceResponse))
