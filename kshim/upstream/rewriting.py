"""Rewrites the upstream's answers for clients: kshim's addresses in place of the brokers'.

Pure: messages in, messages out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from kshim.api.api_versions import FIRST_VERSION_WITH_MINIMUM_0
from kshim.configs.endpoint import Endpoint
from kshim.upstream.table import announced
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsResponse
from schemas.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from schemas.messages.metadata import MetadataResponse, MetadataResponseBroker
from schemas.messages.produce import NodeEndpoint, ProduceResponse

Place = Callable[[int, Endpoint], Endpoint | None]
"""Maps a broker's (node id, upstream address) to the address at which the client reaches it.

None leaves the broker out of the answer.
"""

NO_NODE = -1
FIRST_PRODUCE_VERSION_WITH_ENDPOINTS = 10
FIRST_PRODUCE_VERSION_BY_ID = 13
_ERROR_AT = _TAGS_AT = 4
"""The place behind the correlation id: the error of ApiVersions, or the header's tagged fields."""
_PRODUCE_END_BYTES = 5
"""throttle_time_ms, and the byte that says that no tagged fields follow."""
B = TypeVar("B")
C = TypeVar("C", Coordinator, FindCoordinatorResponse)
N = TypeVar("N", MetadataResponseBroker, DescribeClusterBroker, NodeEndpoint)


def is_rewritten(api_key: int, api_version: int, frame: bytes) -> bool:
    """True if the response in `frame`, which includes its header, has to be decoded and rewritten."""
    if api_key == ApiKey.API_VERSIONS:
        # The broker answers an unsupported version in v0, and lists only the versions of ApiVersions.
        return int.from_bytes(frame[_ERROR_AT : _ERROR_AT + 2], signed=True) != ErrorCode.UNSUPPORTED_VERSION
    return api_key != ApiKey.PRODUCE or not _is_plain(frame, api_version)


def _is_plain(frame: bytes, api_version: int) -> bool:
    """True if a response to Produce has no error and no optional field. Such a response names no broker.

    Nearly all responses are plain, and decoding takes ten times as long as this check. It returns False where
    a length takes more than one byte.
    """
    if api_version < FIRST_PRODUCE_VERSION_WITH_ENDPOINTS:
        return True
    try:
        if frame[_TAGS_AT]:
            return False
        topics, at = _count(frame, _TAGS_AT + 1), _TAGS_AT + 2
        for _ in range(topics):
            at += 16 if api_version >= FIRST_PRODUCE_VERSION_BY_ID else _count(frame, at) + 1
            partitions, at = _count(frame, at), at + 1
            for _ in range(partitions):
                error, optional = frame[at + 4 : at + 6], frame[at + 30 : at + 33]
                if error != b"\0\0" or optional != b"\1\0\0":
                    return False
                at += 33
            at += 1
    except (IndexError, ValueError):
        return False
    return at + _PRODUCE_END_BYTES == len(frame) and frame[-1] == 0


def _count(frame: bytes, at: int) -> int:
    """Return the length of a compact array or string. Raises ValueError if it is null or takes more bytes
    than one.
    """
    if not 0 < frame[at] < 0x80:
        raise ValueError
    return frame[at] - 1


def changed(api_key: int, response: object, place: Place, passed: Collection[int] = ()) -> object:
    """Rewrite an upstream response for a client; return the same object if nothing changes. passed: see
    `announced`.
    """
    if isinstance(response, ApiVersionsResponse):
        return _api_versions(response, passed)
    return _REWRITES[api_key](response, place)


def _api_versions(response: ApiVersionsResponse, passed: Collection[int]) -> ApiVersionsResponse:
    upstream = {each.api_key: range(each.min_version, each.max_version + 1) for each in response.api_keys}
    return replace(response, api_keys=announced(upstream, passed))


def versions_for(
    api_version: int, response: ApiVersionsResponse, passed: Collection[int] = ()
) -> ApiVersionsResponse:
    """Rewrite an upstream answer in its newest version for a client that asks in another version."""
    shown = _api_versions(response, passed)
    if api_version >= FIRST_VERSION_WITH_MINIMUM_0:
        return shown
    older = tuple(each for each in shown.supported_features if each.min_version)
    return replace(shown, supported_features=older)


def _metadata(response: MetadataResponse, place: Place) -> MetadataResponse:
    return replace(response, brokers=_placed(response.brokers, place))


def _describe_cluster(response: DescribeClusterResponse, place: Place) -> DescribeClusterResponse:
    return replace(response, brokers=_placed(response.brokers, place, "broker_id"))


def _produce(response: ProduceResponse, place: Place) -> ProduceResponse:
    if not response.node_endpoints:
        return response
    return replace(response, node_endpoints=_placed(response.node_endpoints, place))


def _as_it_is(response: B, _: Place) -> B:
    """Return the response unchanged: it names no broker."""
    return response


def _find_coordinator(response: FindCoordinatorResponse, place: Place) -> FindCoordinatorResponse:
    """Rewrite a FindCoordinator response. In v0 to v3 the response itself is the one coordinator."""
    if response.coordinators:
        return replace(response, coordinators=tuple(_found(each, place) for each in response.coordinators))
    return response if response.node_id == NO_NODE else _found(response, place)


def _found(it: C, place: Place) -> C:
    """Report a coordinator that clients cannot reach as not available, so that the client asks again."""
    if it.node_id == NO_NODE or it.error_code:
        return it
    here = place(it.node_id, Endpoint(it.host, it.port))
    if here is None:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return replace(it, node_id=NO_NODE, host="", port=-1, error_code=error)
    return replace(it, host=here.host, port=here.port)


def _placed(brokers: Iterable[N], place: Place, id_field: str = "node_id") -> tuple[N, ...]:
    placed = []
    for it in brokers:
        here = place(getattr(it, id_field), Endpoint(it.host, it.port))
        if here is not None:
            placed.append(replace(it, host=here.host, port=here.port))
    return tuple(placed)


_REWRITES: Final[Mapping[int, Callable[[Any, Place], object]]] = {
    ApiKey.METADATA: _metadata,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _as_it_is,
    ApiKey.PRODUCE: _produce,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
}
