"""DescribeCluster (60): the cluster's id, controller and brokers (KIP-700).

v0 is flexible already; v1 endpoint_type (KIP-919); v2 fenced brokers (KIP-1073).

endpoint_type: 1 brokers, 2 controllers. An authorized_operations bit field is -2**31 unless the request asks
for it.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int8, int16, int32, nullable_string, string


@message(api_key=ApiKey.DESCRIBE_CLUSTER, versions=range(0, 3), flexible=0)
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = field(boolean)
    endpoint_type: int = field(int8, since=1, default=1)
    include_fenced_brokers: bool = field(boolean, since=2)


@entity
class DescribeClusterBroker:
    broker_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(nullable_string, default=None)
    is_fenced: bool = field(boolean, since=2)


@message(api_key=ApiKey.DESCRIBE_CLUSTER, versions=range(0, 3), flexible=0)
class DescribeClusterResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, default=None)
    endpoint_type: int = field(int8, since=1, default=1)
    cluster_id: str = field(string)
    controller_id: int = field(int32, default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = field(array(DescribeClusterBroker))
    cluster_authorized_operations: int = field(int32, default=-(1 << 31))
