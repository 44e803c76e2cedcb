"""ApiVersions (18): which APIs this server has, in which versions.

v3: the client names its software (KIP-511); v4: features may have a minimum version of 0 (KIP-1022). A
request in a higher version than we serve is answered in v0, with UNSUPPORTED_VERSION and our range for this
one API (KIP-511); see `unsupported`.

The announced features are those of `cluster.features`. A feature at version 0 is not in
use, and not listed. The epoch of the features is the number of changes of the cluster; clients ignore
features with an older epoch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from kshim.callers import Client, RequestContext
from kshim.cluster.features import SUPPORTED
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from schemas.registry import VERSIONS

if TYPE_CHECKING:
    from kshim.answering.views import ClusterView

FIRST_VERSION_WITH_MINIMUM_0 = 4
ANY_NODE = -1
MOST_CHARACTERS = 100
"""Most characters that are kept of the name and of the version of a client's software, for the log."""
SUPPORTED_FEATURES = tuple(
    SupportedFeatureKey(name=name, min_version=versions[0], max_version=versions[-1])
    for name, versions in SUPPORTED.items()
)

# The names and versions of a client's software that Kafka accepts.
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


# The announced versions: those of the schemas, with the exceptions below.
ANNOUNCED = VERSIONS | {
    # Kafka also announces 0 to 2, at which it closes the connection: without them librdkafka would switch
    # compression off (KAFKA-18659).
    ApiKey.PRODUCE: range(VERSIONS[ApiKey.PRODUCE].stop),
}
REFUSED = frozenset((ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT))
"""APIs that are announced, but answered with UNSUPPORTED_VERSION, like in an Apache Kafka with such groups
switched off. So members fail and say why, and the log says what to change.
"""


def api_versions(
    broker: ClusterView, context: RequestContext, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    """Answer with `ANNOUNCED` and the features."""
    if context.api_version >= 3:
        if not note_software(context.client, request):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        error = not_as_expected(broker.cluster.cluster_id, broker.node_id, request)
        if error is not ErrorCode.NONE:
            return ApiVersionsResponse(error_code=error)
        context.stays_the_same = True
    return ApiVersionsResponse(
        api_keys=_announced(),
        supported_features=SUPPORTED_FEATURES if context.api_version >= FIRST_VERSION_WITH_MINIMUM_0 else (),
        finalized_features_epoch=broker.cluster.writer.offset,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in broker.cluster.features.levels.items()
            if level
        ),
    )


def note_software(client: Client | None, request: ApiVersionsRequest) -> bool:
    """Note the name and version of a client's software. Return False if Kafka would not accept them."""
    software = (request.client_software_name, request.client_software_version)
    if not all(map(_SOFTWARE.fullmatch, software)):
        return False
    if client is not None:
        client.software = " ".join(software)[:MOST_CHARACTERS]
    return True


def not_as_expected(cluster_id: str, node_id: int, request: ApiVersionsRequest) -> ErrorCode:
    """REBOOTSTRAP_REQUIRED if the client expects another cluster or node behind this address (KIP-1242)."""
    expects_cluster, expects_node = request.cluster_id is not None, request.node_id != ANY_NODE
    if expects_cluster != expects_node:
        return ErrorCode.INVALID_REQUEST
    if not expects_node or (request.cluster_id, request.node_id) == (cluster_id, node_id):
        return ErrorCode.NONE
    return ErrorCode.REBOOTSTRAP_REQUIRED


def unsupported(versions: range) -> ApiVersionsResponse:
    """The v0 answer to an ApiVersions request whose version is none of `versions`."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_entries({ApiKey.API_VERSIONS: versions})
    )


@cache
def _announced() -> tuple[ApiVersion, ...]:
    return _entries(ANNOUNCED)


def _entries(served: Mapping[ApiKey, range]) -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(api_key=key, min_version=versions[0], max_version=versions[-1])
        for key, versions in sorted(served.items())
    )
