"""UpdateFeatures (57): change the version at which the cluster uses a feature (KIP-584).

v0 is flexible already; v1 kinds of downgrades and a dry run (KIP-778); v2 has no results of single features:
the request fails as a whole (KIP-1022).

upgrade_type: 1 upgrade, 2 safe downgrade, 3 unsafe downgrade. A max_version_level below 1 takes a feature
out of use.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int8, int16, int32, nullable_string, string


@entity
class FeatureUpdateKey:
    feature: str = field(string)
    max_version_level: int = field(int16)
    allow_downgrade: bool = field(boolean, until=0)
    upgrade_type: int = field(int8, since=1, default=1)


@message(api_key=ApiKey.UPDATE_FEATURES, versions=range(0, 3), flexible=0)
class UpdateFeaturesRequest:
    timeout_ms: int = field(int32, default=60_000)
    feature_updates: tuple[FeatureUpdateKey, ...] = field(array(FeatureUpdateKey))
    validate_only: bool = field(boolean, since=1)


@entity
class UpdatableFeatureResult:
    feature: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)


@message(api_key=ApiKey.UPDATE_FEATURES, versions=range(0, 3), flexible=0)
class UpdateFeaturesResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    results: tuple[UpdatableFeatureResult, ...] = field(array(UpdatableFeatureResult), until=1)
