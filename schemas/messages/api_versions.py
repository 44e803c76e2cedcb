"""ApiVersions (18): the requests and versions that this broker serves.

v1 throttle_time_ms; v3 flexible, the client's name and version (KIP-511), the broker's features (KIP-584);
v4 a feature's min_version may be 0 (KIP-1022); v5 the cluster and node that the client expects (KIP-1242).

A version that is not served is answered with UNSUPPORTED_VERSION in a v0 body that lists ApiVersions itself
(KIP-511). The response header is never flexible, so that a client can read it before it knows the broker.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int16, int32, int64, nullable_string, string


@message(api_key=ApiKey.API_VERSIONS, versions=range(0, 6), flexible=3)
class ApiVersionsRequest:
    client_software_name: str = field(string, since=3)
    client_software_version: str = field(string, since=3)
    cluster_id: str | None = field(nullable_string, since=5, default=None)
    node_id: int = field(int32, since=5, default=-1)


@entity
class ApiVersion:
    api_key: int = field(int16)
    min_version: int = field(int16)
    max_version: int = field(int16)


@entity
class SupportedFeatureKey:
    name: str = field(string)
    min_version: int = field(int16)
    max_version: int = field(int16)


@entity
class FinalizedFeatureKey:
    name: str = field(string)
    max_version_level: int = field(int16)
    min_version_level: int = field(int16)


@message(api_key=ApiKey.API_VERSIONS, versions=range(0, 6), flexible=3)
class ApiVersionsResponse:
    error_code: int = field(int16)
    api_keys: tuple[ApiVersion, ...] = field(array(ApiVersion))
    throttle_time_ms: int = field(int32, since=1)
    supported_features: tuple[SupportedFeatureKey, ...] = field(array(SupportedFeatureKey), since=3, tag=0)
    finalized_features_epoch: int = field(int64, since=3, default=-1, tag=1)
    finalized_features: tuple[FinalizedFeatureKey, ...] = field(array(FinalizedFeatureKey), since=3, tag=2)
    zk_migration_ready: bool = field(boolean, since=3, tag=3)
