"""DescribeConfigs (32): configuration of topics, brokers and groups.

v1 config_source and synonyms in place of is_default (KIP-226); v3 config_type and documentation (KIP-569);
v4 flexible. Kafka 4.0 removed v0.

resource_type: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group. Null configuration_keys ask
for all. config_source: 1 topic, 2 broker, 3 cluster-wide broker default, 4 static broker, 5 default, 6 broker
logger, 7 client metrics, 8 group. config_type: 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list,
8 class, 9 password.
"""

from collections.abc import Sequence

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int8, int16, int32, nullable_array, nullable_string, string


@entity
class DescribeConfigsResource:
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configuration_keys: tuple[str, ...] | None = field(nullable_array(string))


@message(api_key=ApiKey.DESCRIBE_CONFIGS, versions=range(1, 5), flexible=4)
class DescribeConfigsRequest:
    resources: tuple[DescribeConfigsResource, ...] = field(array(DescribeConfigsResource))
    include_synonyms: bool = field(boolean)
    include_documentation: bool = field(boolean, since=3)


@entity
class DescribeConfigsSynonym:
    name: str = field(string)
    value: str | None = field(nullable_string)
    source: int = field(int8)


@entity
class DescribeConfigsResourceResult:
    name: str = field(string)
    value: str | None = field(nullable_string)
    read_only: bool = field(boolean)
    config_source: int = field(int8, default=-1)
    is_sensitive: bool = field(boolean)
    synonyms: tuple[DescribeConfigsSynonym, ...] = field(array(DescribeConfigsSynonym))
    config_type: int = field(int8, since=3)
    documentation: str | None = field(nullable_string, since=3)


@entity
class DescribeConfigsResult:
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: Sequence[DescribeConfigsResourceResult] = field(array(DescribeConfigsResourceResult))


@message(api_key=ApiKey.DESCRIBE_CONFIGS, versions=range(1, 5), flexible=4)
class DescribeConfigsResponse:
    throttle_time_ms: int = field(int32)
    results: tuple[DescribeConfigsResult, ...] = field(array(DescribeConfigsResult))
