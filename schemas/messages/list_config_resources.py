"""ListConfigResources (74): the resources that have configs (KIP-714).

v1 resource_types and resource_type (KIP-1142); v0 lists only client metrics.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int8, int16, int32, string


@message(api_key=ApiKey.LIST_CONFIG_RESOURCES, versions=range(0, 2), flexible=0)
class ListConfigResourcesRequest:
    resource_types: tuple[int, ...] = field(array(int8), since=1)


@entity
class ConfigResource:
    resource_name: str = field(string)
    resource_type: int = field(int8, since=1, default=16)


@message(api_key=ApiKey.LIST_CONFIG_RESOURCES, versions=range(0, 2), flexible=0)
class ListConfigResourcesResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    config_resources: tuple[ConfigResource, ...] = field(array(ConfigResource))
