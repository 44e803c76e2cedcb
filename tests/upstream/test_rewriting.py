"""Answers of the upstream with kshim's addresses: in each version, and nothing else of them changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.configs.endpoint import Endpoint
from kshim.upstream.rewriting import changed, is_rewritten
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from schemas.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from schemas.messages.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from schemas.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from schemas.registry import VERSIONS, decode_response, encode_response

UPSTREAM = Endpoint("10.0.0.5", 9092)
LOST = 9
"""A broker for which no port could be opened."""


def place(node_id: int, address: Endpoint) -> Endpoint | None:
    assert address == UPSTREAM
    return None if node_id == LOST else Endpoint("kshim", 9000 + node_id)


def seen(api_key: ApiKey, version: int, response: Any) -> Any:
    """The response as a client reads it."""
    _, sent = decode_response(api_key, version, encode_response(api_key, version, 7, response))
    return decode_response(
        api_key, version, encode_response(api_key, version, 7, changed(api_key, sent, place))
    )[1]


HOST, PORT = UPSTREAM.host, UPSTREAM.port
TOPICS = (MetadataResponseTopic(name="t", error_code=3),)


@pytest.mark.parametrize("version", VERSIONS[ApiKey.METADATA])
def test_metadata(version: int) -> None:
    brokers = [MetadataResponseBroker(node_id=n, host=HOST, port=PORT, rack="r") for n in (3, LOST, 4)]
    upstream = MetadataResponse(brokers=tuple(brokers), cluster_id="c", controller_id=4, topics=TOPICS)
    found = seen(ApiKey.METADATA, version, upstream)
    assert [(b.node_id, b.host, b.port) for b in found.brokers] == [(3, "kshim", 9003), (4, "kshim", 9004)]
    assert [b.rack for b in found.brokers] == ["r" if version >= 1 else None] * 2
    assert (found.topics[0].name, found.topics[0].error_code) == ("t", 3)


@pytest.mark.parametrize("version", VERSIONS[ApiKey.DESCRIBE_CLUSTER])
def test_describe_cluster(version: int) -> None:
    broker = DescribeClusterBroker(broker_id=3, host=HOST, port=PORT, rack="r", is_fenced=version >= 2)
    upstream = DescribeClusterResponse(cluster_id="c", controller_id=3, brokers=(broker,))
    expected = replace(upstream, brokers=(replace(broker, host="kshim", port=9003),))
    assert seen(ApiKey.DESCRIBE_CLUSTER, version, upstream) == expected


@pytest.mark.parametrize("version", range(4))
def test_the_coordinator(version: int) -> None:
    upstream = FindCoordinatorResponse(node_id=3, host=HOST, port=PORT)
    found = seen(ApiKey.FIND_COORDINATOR, version, upstream)
    assert (found.node_id, found.host, found.port, found.error_code) == (3, "kshim", 9003, 0)


@pytest.mark.parametrize("version", range(4))
def test_no_coordinator(version: int) -> None:
    none = FindCoordinatorResponse(error_code=15, node_id=-1, host="", port=-1)
    found = seen(ApiKey.FIND_COORDINATOR, version, none)
    assert (found.node_id, found.host, found.port, found.error_code) == (-1, "", -1, 15)


def test_a_coordinator_without_a_port_is_not_available() -> None:
    found = changed(
        ApiKey.FIND_COORDINATOR, FindCoordinatorResponse(node_id=LOST, host=HOST, port=PORT), place
    )
    assert (found.node_id, found.host, found.port) == (-1, "", -1)
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", range(4, VERSIONS[ApiKey.FIND_COORDINATOR].stop))
def test_many_coordinators(version: int) -> None:
    upstream = FindCoordinatorResponse(
        coordinators=(
            Coordinator(key="a", node_id=3, host=HOST, port=PORT),
            Coordinator(key="b", node_id=-1, host="", port=-1, error_code=15),
        )
    )
    found = seen(ApiKey.FIND_COORDINATOR, version, upstream).coordinators
    assert [(c.key, c.node_id, c.host, c.port, c.error_code) for c in found] == [
        ("a", 3, "kshim", 9003, 0),
        ("b", -1, "", -1, 15),
    ]


@pytest.mark.parametrize("version", range(10, VERSIONS[ApiKey.PRODUCE].stop))
def test_the_new_leader_after_a_produce(version: int) -> None:
    endpoint = NodeEndpoint(node_id=3, host=HOST, port=PORT, rack="r")
    found = seen(ApiKey.PRODUCE, version, ProduceResponse(node_endpoints=(endpoint,)))
    assert found == ProduceResponse(node_endpoints=(replace(endpoint, host="kshim", port=9003),))


def test_a_produce_without_new_leaders_is_left_as_it_is() -> None:
    response = ProduceResponse()
    assert changed(ApiKey.PRODUCE, response, place) is response
    assert [v for v in VERSIONS[ApiKey.PRODUCE] if is_rewritten(ApiKey.PRODUCE, v, b"")] == [10, 11, 12, 13]


partitions = st.lists(
    st.builds(
        PartitionProduceResponse,
        index=st.integers(0, 3),
        error_code=st.sampled_from([0, 0, 0, 6]),
        base_offset=st.integers(-1, 2**62),
        error_message=st.sampled_from([None, None, None, "", "why"]),
        current_leader=st.sampled_from([LeaderIdAndEpoch(), LeaderIdAndEpoch(leader_id=3, leader_epoch=1)]),
    ),
    max_size=3,
).map(tuple)
topics = st.lists(
    st.builds(
        TopicProduceResponse,
        name=st.sampled_from(["t", "t" * 126, "t" * 127, "t" * 249]),
        partition_responses=partitions,
    ),
    max_size=3,
).map(tuple)
nodes = st.sampled_from([(), (), (NodeEndpoint(node_id=3, host=HOST, port=0),)])


@given(st.sampled_from(range(10, VERSIONS[ApiKey.PRODUCE].stop)), topics, nodes, st.sampled_from([0, 1]))
def test_an_answer_to_produce_is_read_if_it_may_name_a_broker(
    version: int, responses: Any, node_endpoints: Any, throttle_time_ms: int
) -> None:
    response = ProduceResponse(
        responses=responses, node_endpoints=node_endpoints, throttle_time_ms=throttle_time_ms
    )
    frame = bytes(encode_response(ApiKey.PRODUCE, version, 7, response))
    assert is_rewritten(ApiKey.PRODUCE, version, frame) or not node_endpoints


@pytest.mark.parametrize("version", range(10, VERSIONS[ApiKey.PRODUCE].stop))
@pytest.mark.parametrize("count", [1, 2])
def test_an_ordinary_answer_to_produce_is_not_read(version: int, count: int) -> None:
    partition = PartitionProduceResponse(index=1, base_offset=2**40, log_append_time_ms=5, log_start_offset=7)
    topic = TopicProduceResponse(name="t" * 100, partition_responses=(partition,) * count)
    response = ProduceResponse(responses=(topic,) * count, throttle_time_ms=3)
    frame = bytes(encode_response(ApiKey.PRODUCE, version, 7, response))
    assert not is_rewritten(ApiKey.PRODUCE, version, frame)
    refused = replace(partition, error_code=6)
    response = replace(response, responses=(replace(topic, partition_responses=(partition, refused)),))
    frame = bytes(encode_response(ApiKey.PRODUCE, version, 7, response))
    assert is_rewritten(ApiKey.PRODUCE, version, frame)


@pytest.mark.parametrize("version", VERSIONS[ApiKey.API_VERSIONS])
def test_versions_and_features(version: int) -> None:
    names = ("group.version", "metadata.version", "share.version", "streams.version", "transaction.version")
    keys = (ApiKey.METADATA, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.LEADER_AND_ISR)
    upstream = ApiVersionsResponse(
        api_keys=tuple(ApiVersion(api_key=key, min_version=0, max_version=7) for key in keys),
        supported_features=tuple(SupportedFeatureKey(name=name, max_version=1) for name in names),
        finalized_features_epoch=5,
        finalized_features=tuple(FinalizedFeatureKey(name=name, max_version_level=1) for name in names),
    )
    found = seen(ApiKey.API_VERSIONS, version, upstream)
    told = {each.api_key: (each.min_version, each.max_version) for each in found.api_keys}
    assert told[ApiKey.METADATA] == (0, 7)
    assert ApiKey.JOIN_GROUP in told
    assert told[ApiKey.CONSUMER_GROUP_HEARTBEAT] == (0, 1), "kshim serves it, whatever the upstream does"
    assert told[ApiKey.SHARE_GROUP_HEARTBEAT] == (1, 1)
    assert not {ApiKey.LEADER_AND_ISR, ApiKey.FETCH, ApiKey.STREAMS_GROUP_HEARTBEAT} & told.keys()
    left = list(names) if version >= 3 else []
    assert [each.name for each in found.supported_features] == left
    assert [each.name for each in found.finalized_features] == left


def test_an_unsupported_version_of_api_versions_is_left_as_it_is() -> None:
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    assert not is_rewritten(ApiKey.API_VERSIONS, 4, encode_response(ApiKey.API_VERSIONS, 0, 7, response))
    assert is_rewritten(
        ApiKey.API_VERSIONS, 4, encode_response(ApiKey.API_VERSIONS, 4, 7, ApiVersionsResponse())
    )
