"""IncrementalAlterConfigs (44): change single configs of topics and brokers (KIP-339).

v1 flexible. config_operation: 0 SET, 1 DELETE, 2 APPEND, 3 SUBTRACT.
"""

from collections.abc import Sequence

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int8, int16, int32, nullable_string, string


@entity
class AlterableConfig:
    name: str = field(string)
    config_operation: int = field(int8)
    value: str | None = field(nullable_string)


@entity
class AlterConfigsResource:
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: tuple[AlterableConfig, ...] = field(array(AlterableConfig))


@message(api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=range(0, 2), flexible=1)
class IncrementalAlterConfigsRequest:
    resources: tuple[AlterConfigsResource, ...] = field(array(AlterConfigsResource))
    validate_only: bool = field(boolean)


@entity
class AlterConfigsResourceResponse:
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    resource_type: int = field(int8)
    resource_name: str = field(string)


@message(api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=range(0, 2), flexible=1)
class IncrementalAlterConfigsResponse:
    throttle_time_ms: int = field(int32)
    responses: Sequence[AlterConfigsResourceResponse] = field(array(AlterConfigsResourceResponse))
