"""UpdateFeatures (57): change the versions of features; see `cluster.features` (KIP-584).

v1: the kind of a change, and a dry run (KIP-778). Kafka ignores v0's allow_downgrade, so v0 can only upgrade.
v2: no result for each feature, because one refusal refuses all (KIP-1022).
"""

from __future__ import annotations

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster.features import FeatureUpdate
from kshim.storage.interfaces import StorageError
from schemas.error_code import ErrorCode
from schemas.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

REFUSED = "The update failed for all features since the following feature had an error: "
NOT_STORED = "The features could not be stored."


async def update_features(
    broker: ClusterView, context: RequestContext, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    """Change all features or none. If a feature is named twice, its last update counts."""
    asked = [
        FeatureUpdate(it.feature, it.max_version_level, it.upgrade_type) for it in request.feature_updates
    ]
    updates = list({update.feature: update for update in asked}.values())
    cluster = broker.cluster
    try:
        fault = await cluster.features.update(
            updates, lambda: cluster.controller_id, validate_only=request.validate_only
        )
    except StorageError:
        return _refused(ErrorCode.KAFKA_STORAGE_ERROR, NOT_STORED)
    if fault is not None:
        return _refused(ErrorCode.INVALID_UPDATE_VERSION, REFUSED + fault)
    results = tuple(UpdatableFeatureResult(feature=update.feature, error_message="NONE") for update in asked)
    return UpdateFeaturesResponse(error_message=None, results=results)


def _refused(error: ErrorCode, message: str) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error, error_message=message)
