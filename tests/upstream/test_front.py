"""Requests in front of an upstream, over a coordinator in memory and a broker by hand."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred

from kshim.callers import Refused
from kshim.turns import Turn
from kshim.upstream.confirming import FRESH_S
from kshim.upstream.fellows import port_id
from kshim.upstream.front import LARGE_BYTES
from kshim.upstream.link import LinkError
from kshim.upstream.table import TABLE, Way
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from schemas.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from schemas.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from schemas.messages.produce import NodeEndpoint, ProduceRequest, ProduceResponse
from schemas.registry import VERSIONS, decode_request, decode_response, encode_response
from tests.api.harness import AtOnce, advance, later, result
from tests.upstream.front_world import (
    NEW_ID,
    OTHER,
    OURSELVES,
    TOPIC_ID,
    World,
    commit,
)


def test_each_api_goes_its_way() -> None:
    """With an empty body, which is no request: what is forwarded is not looked into."""
    for api_key in ApiKey:
        world = World()
        version = VERSIONS[api_key][-1] if api_key in VERSIONS else 0
        version = min(version, TABLE[api_key].newest) if api_key in TABLE else version
        software = b"\0\2a\2a\0\xff\xff\xff\xff\0" if api_key is ApiKey.API_VERSIONS else b""  # this is read
        frame = api_key.to_bytes(2) + version.to_bytes(2) + bytes(4) + b"\xff\xff" + software
        way = TABLE[api_key].way if api_key in TABLE else Way.HIDDEN
        try:
            world.front.answer(replace(world.here, node_id=1), frame, world.client, Turn())
        except Refused:
            is_answered = False
        else:
            is_answered = True
        is_forwarded = bool(world.passage.sent)
        if api_key not in (ApiKey.FIND_COORDINATOR, ApiKey.ADD_OFFSETS_TO_TXN):  # these are looked into
            assert is_forwarded is (way in (Way.FORWARDED, Way.REWRITTEN)), api_key
        assert way is not Way.HIDDEN or not is_answered, api_key
        assert not is_forwarded or world.passage.sent == [frame]


def test_what_is_forwarded_comes_back_as_it_is() -> None:
    world = World()
    answer = later(world.send(ApiKey.LIST_OFFSETS, 1, _request(ApiKey.LIST_OFFSETS)))
    world.passage.promise.answer_alone(b"anything")
    assert result(answer) == b"anything"
    assert world.passage.is_read == [False]


def test_what_somebody_looks_into_comes_back_whole() -> None:
    world = World()
    world.send(ApiKey.FETCH, 12, _request(ApiKey.FETCH), is_decoded=True)
    assert world.passage.is_read == [True]


def _request(key: ApiKey) -> Any:
    from schemas.registry import MESSAGES

    return MESSAGES[key][0]()


@pytest.mark.parametrize(
    ("key", "version"), [(ApiKey.FETCH, 16), (ApiKey.METADATA, 99), (ApiKey.PRODUCE, 99), (ApiKey.FETCH, -1)]
)
def test_a_version_that_was_not_announced_is_refused(key: ApiKey, version: int) -> None:
    world = World()
    frame = key.to_bytes(2) + version.to_bytes(2, signed=True) + bytes(4) + b"\0\1c"
    with pytest.raises(Refused, match=r"client_id 'c'.* is a version that was not announced"):
        world.front.answer(world.here, frame, world.client, Turn())
    assert not world.passage.sent


@pytest.mark.parametrize("frame", [b"", b"\0\3\0\0\0\0\0"])
def test_less_than_a_header_is_refused(frame: bytes) -> None:
    world = World()
    with pytest.raises(Refused, match="less than a header"):
        world.front.answer(world.here, frame, world.client, Turn())


@pytest.mark.parametrize("version", VERSIONS[ApiKey.PRODUCE])
def test_a_produce_without_acks_has_no_answer(version: int) -> None:
    world = World()
    assert world.send(ApiKey.PRODUCE, version, ProduceRequest(acks=0)) is None
    assert len(world.passage.sent) == 1
    assert not world.passage.is_read


@pytest.mark.parametrize("version", [9, 13])
def test_a_produce_learns_of_new_leaders(version: int) -> None:
    world = World()
    endpoint = NodeEndpoint(node_id=2, host="10.0.0.2", port=9092)
    upstream = ProduceResponse(node_endpoints=(endpoint,) if version >= 10 else ())
    told = world.forwarded(ApiKey.PRODUCE, version, ProduceRequest(acks=-1), upstream)
    assert told == ProduceResponse(
        node_endpoints=(replace(endpoint, host="kshim", port=9101),) if version >= 10 else ()
    )


@pytest.mark.parametrize("topics", [0, 3000])
def test_metadata_has_kshims_addresses(topics: int) -> None:
    world = World()
    upstream = MetadataResponse(
        brokers=(MetadataResponseBroker(node_id=2, host="10.0.0.2", port=9092),),
        topics=tuple(MetadataResponseTopic(name=f"a-long-name-{n}") for n in range(topics)),
    )
    told = world.forwarded(ApiKey.METADATA, 12, MetadataRequest(topics=()), upstream)
    assert [(b.node_id, b.host, b.port) for b in told.brokers] == [(2, "kshim", 9101)]
    assert told.topics == upstream.topics
    is_large = len(encode_response(ApiKey.METADATA, 12, 7, upstream)) > LARGE_BYTES
    assert isinstance(world.here.aside, AtOnce)
    assert world.here.aside.count == (2 if is_large else 0)


@pytest.mark.parametrize("size", [20, LARGE_BYTES + 20])
def test_an_answer_that_cannot_be_read_closes_the_connection(size: int) -> None:
    world = World()
    answer = later(world.send(ApiKey.METADATA, 12, MetadataRequest(topics=())))
    world.passage.promise.answer_alone(b"\xff" * size)
    with pytest.raises(Refused, match="answered by the upstream with what cannot be read"):
        result(answer)


def test_versions_of_a_client_of_the_future() -> None:
    world = World()
    frame = ApiKey.API_VERSIONS.to_bytes(2) + (99).to_bytes(2) + (7).to_bytes(4) + b"\0\1c\0"
    reply = world.front.answer(world.here, frame, world.client, Turn())
    assert isinstance(reply, bytes)
    assert decode_response(ApiKey.API_VERSIONS, 0, reply)[1].error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", VERSIONS[ApiKey.API_VERSIONS])
def test_kshim_knows_what_a_client_runs(version: int) -> None:
    """Which clients can wait for a heartbeat's answer depends on it."""
    world = World()
    request = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.16.1")
    world.send(ApiKey.API_VERSIONS, version, request)
    assert world.client.software == ("librdkafka 2.16.1" if version >= 3 else "")
    assert world.passage.is_read == [True]


@pytest.mark.parametrize("version", VERSIONS[ApiKey.FIND_COORDINATOR])
@pytest.mark.parametrize("node_id", [1, 2])
def test_a_group_is_found_here(version: int, node_id: int) -> None:
    world = World()
    group_id = world.group_at(node_id)
    request = FindCoordinatorRequest(key=group_id, coordinator_keys=(group_id,))
    response = world.ask(ApiKey.FIND_COORDINATOR, version, request)
    (found,) = response.coordinators if version >= 4 else (response,)
    assert (found.error_code, found.node_id, found.host) == (ErrorCode.NONE, node_id, "kshim")
    assert found.port == 9099 + node_id


@pytest.mark.parametrize("version", VERSIONS[ApiKey.FIND_COORDINATOR])
def test_a_group_is_found_at_another_kshim(version: int) -> None:
    world = World()
    group_id = world.group_at(2)
    world.shards.elsewhere = {world.groups.shard_for(group_id)}
    request = FindCoordinatorRequest(key=group_id, coordinator_keys=(group_id,))
    response = world.ask(ApiKey.FIND_COORDINATOR, version, request)
    (found,) = response.coordinators if version >= 4 else (response,)
    assert (found.node_id, found.host, found.port) == (1001, "other", 9200)


@pytest.mark.parametrize("version", VERSIONS[ApiKey.FIND_COORDINATOR])
def test_no_group_is_found_while_no_broker_runs(version: int) -> None:
    world = World()
    world.brokers.running = ()
    request = FindCoordinatorRequest(key="g", coordinator_keys=("g",))
    response = world.ask(ApiKey.FIND_COORDINATOR, version, request)
    (found,) = response.coordinators if version >= 4 else (response,)
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert found.node_id == -1


@pytest.mark.parametrize("key_type", [1, 2])
def test_other_coordinators_are_the_upstream_s(key_type: int) -> None:
    world = World()
    request = FindCoordinatorRequest(key="t", key_type=key_type)
    upstream = FindCoordinatorResponse(node_id=2, host="10.0.0.2", port=9092)
    told = world.forwarded(ApiKey.FIND_COORDINATOR, 3, request, upstream)
    assert (told.node_id, told.host, told.port) == (2, "kshim", 9101)


@pytest.mark.parametrize("version", [3, 4])
def test_the_coordinator_of_a_transaction_has_another_node_id_at_each_kshim(version: int) -> None:
    """librdkafka ignores one whose node id has not changed."""
    world = World()
    world.shards.elsewhere = set()
    at = {"node_id": 2, "host": "10.0.0.2", "port": 9092}
    unknown = Coordinator(key="u", node_id=-1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    one, several = FindCoordinatorResponse(**at), (Coordinator(key="t", **at), unknown)
    upstream = one if version < 4 else FindCoordinatorResponse(coordinators=several)
    request = FindCoordinatorRequest(key="t", key_type=1, coordinator_keys=("t", "u"))
    told = world.forwarded(ApiKey.FIND_COORDINATOR, version, request, upstream)
    found, *others = told.coordinators if version >= 4 else (told,)
    assert (found.node_id, found.host, found.port) == (port_id(OURSELVES, 2), "kshim", 9101)
    assert found.node_id not in (2, port_id(OURSELVES, 1), port_id(OTHER, 2))
    assert [each.node_id for each in others] == ([-1] if version >= 4 else [])


@pytest.mark.parametrize("node_id", [OURSELVES.node_id, port_id(OURSELVES, 1)])
def test_a_client_may_expect_the_node_ids_of_a_coordinator(node_id: int) -> None:
    """The upstream broker knows its own alone."""
    world = World()
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1", node_id=node_id)
    world.send(ApiKey.API_VERSIONS, 5, request)
    (frame,) = world.passage.sent
    assert decode_request(frame)[1].node_id == 1


def test_each_group_is_listed_at_one_port() -> None:
    world = World()
    world.upstream_topics["t"] = TOPIC_ID
    groups = {node_id: world.group_at(node_id) for node_id in (1, 2)}
    for group_id in groups.values():
        commit(world, 9, group_id)
    for at, group_id in groups.items():
        listed = world.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(), at).groups
        assert [group.group_id for group in listed] == [group_id]


def test_all_kshim_are_told_to_clients() -> None:
    world = World()
    world.shards.elsewhere = set()
    upstream = MetadataResponse(brokers=(MetadataResponseBroker(node_id=2, host="10.0.0.2", port=9092),))
    told = world.forwarded(ApiKey.METADATA, 12, MetadataRequest(topics=()), upstream)
    assert [(b.node_id, b.host, b.port) for b in told.brokers] == [
        (2, "kshim", 9101),
        (1000, "kshim", 9100),
        (1001, "other", 9200),
        (port_id(OURSELVES, 2), "kshim", 9101),
        (port_id(OTHER, 2), "other", 9200),
    ]


def test_a_kshim_that_has_met_others_goes_on_to_name_its_ports() -> None:
    world = World()
    world.shards.elsewhere = set()
    world.shards.is_alone = True
    upstream = MetadataResponse(brokers=(MetadataResponseBroker(node_id=2, host="10.0.0.2", port=9092),))
    told = world.forwarded(ApiKey.METADATA, 12, MetadataRequest(topics=()), upstream)
    assert [(b.node_id, b.host, b.port) for b in told.brokers] == [
        (2, "kshim", 9101),
        (1000, "kshim", 9100),
        (port_id(OURSELVES, 2), "kshim", 9101),
    ]


def test_a_kshim_that_has_handed_over_names_the_ports_of_the_other() -> None:
    world = World()
    world.shards.elsewhere = set()
    world.shards.has_left = world.shards.is_alone = True
    there = {"node_id": 2, "host": "10.0.0.2", "port": 9092}
    upstream = MetadataResponse(brokers=(MetadataResponseBroker(**there),))
    told = world.forwarded(ApiKey.METADATA, 12, MetadataRequest(topics=()), upstream)
    assert (told.brokers[0].node_id, told.brokers[0].host, told.brokers[0].port) == (2, "other", 9200)
    request = FindCoordinatorRequest(key="t", key_type=1)
    found = world.forwarded(ApiKey.FIND_COORDINATOR, 3, request, FindCoordinatorResponse(**there))
    assert (found.node_id, found.host, found.port) == (port_id(OTHER, 2), "other", 9200)


def test_a_member_is_answered_at_any_port() -> None:
    world = World()
    for at in (1, 2):
        answered = world.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id="g", member_id="m"), at)
        assert answered.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", VERSIONS[ApiKey.OFFSET_COMMIT])
def test_topics_are_learned_when_an_offset_is_committed(version: int) -> None:
    world = World()
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(world, version) == unknown
    world.upstream_topics["t"] = TOPIC_ID
    advance(world.here, 10_000)
    assert commit(world, version) == ErrorCode.NONE


@pytest.mark.parametrize("version", VERSIONS[ApiKey.ADD_OFFSETS_TO_TXN])
@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.PRODUCER_FENCED])
def test_the_shard_of_a_group_is_added_to_a_transaction(version: int, error: ErrorCode) -> None:
    world = World()
    world.link.callback(SimpleNamespace(answered=ApiVersionsResponse(), close=lambda: None))
    request = AddOffsetsToTxnRequest(transactional_id="t", producer_id=7, producer_epoch=2, group_id="g")
    answer = later(world.send(ApiKey.ADD_OFFSETS_TO_TXN, version, request))
    (frame,) = world.passage.sent
    header, asked = decode_request(frame)
    assert (header.api_key, header.api_version, header.client_id) == (ApiKey.ADD_PARTITIONS_TO_TXN, 3, "c")
    shard = world.groups.shard_for("g")
    assert asked.v3_and_below_topics == (AddPartitionsToTxnTopic(name="groups", partitions=(shard,)),)
    assert (asked.v3_and_below_transactional_id, asked.v3_and_below_producer_epoch) == ("t", 2)
    partition = AddPartitionsToTxnPartitionResult(partition_index=shard, partition_error_code=error)
    added = AddPartitionsToTxnTopicResult(name="groups", results_by_partition=(partition,))
    response = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=(added,))
    world.passage.promise.answer_alone(encode_response(ApiKey.ADD_PARTITIONS_TO_TXN, 3, 7, response))
    told = decode_response(ApiKey.ADD_OFFSETS_TO_TXN, version, bytes(result(answer)))[1]
    is_old = error and version < 2
    assert told.error_code == (ErrorCode.INVALID_PRODUCER_EPOCH if is_old else error)


@pytest.mark.parametrize("version", [7, 8])
def test_offsets_are_read_after_the_ends_of_transactions(version: int) -> None:
    world = World()
    world.shards.open = {world.groups.shard_for("g")}
    group = OffsetFetchRequestGroup(group_id="g", topics=())
    request = OffsetFetchRequest(group_id="g", topics=(), groups=(group,))
    answer = later(world.send(ApiKey.OFFSET_FETCH, version, request))
    assert isinstance(answer, Deferred)
    assert not answer.called
    world.shards.read.callback(None)
    reply = result(answer)
    assert decode_response(ApiKey.OFFSET_FETCH, version, bytes(reply))[1].error_code == ErrorCode.NONE


def committed(world: World, version: int, topic_id: UUID = TOPIC_ID) -> int:
    """The group's committed offset for the first partition of "t"."""
    topics = (OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)
    named = (OffsetFetchRequestTopics(name="t", topic_id=topic_id, partition_indexes=(0,)),)
    group = OffsetFetchRequestGroup(group_id="g", topics=named)
    answered = world.ask(
        ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(group_id="g", topics=topics, groups=(group,))
    )
    (topic,) = answered.groups[0].topics if version >= 8 else answered.topics
    return int(topic.partitions[0].committed_offset)


@pytest.mark.parametrize("fetched", [7, 9, 10])
@pytest.mark.parametrize("commits", [7, 9, 10])
def test_a_topic_that_was_made_again_has_no_old_offset(commits: int, fetched: int) -> None:
    """From the first question on: kshim asks the upstream whether it still is the same topic."""
    world = World()
    world.upstream_topics["t"] = TOPIC_ID
    commit(world, commits)
    assert committed(world, fetched) == 5
    world.upstream_topics["t"] = NEW_ID
    assert committed(world, fetched, NEW_ID) == -1
    seen = world.groups.see("g")
    assert seen is not None
    assert not seen.committed, "the old offset is deleted"


@pytest.mark.parametrize("version", [7, 9, 10])
def test_a_commit_for_the_new_topic_stays(version: int) -> None:
    """It arrives before kshim has looked at the topics."""
    world = World()
    world.upstream_topics["t"] = TOPIC_ID
    commit(world, version)
    advance(world.here, FRESH_S * 1000)
    world.upstream_topics["t"] = NEW_ID
    commit(world, version, topic_id=NEW_ID)
    advance(world.here, 100_000)
    assert committed(world, 9) == 5


def test_a_commit_does_not_wait_for_an_upstream_that_does_not_answer() -> None:
    world = World()
    world.upstream_topics["t"] = TOPIC_ID
    commit(world, 9)
    advance(world.here, FRESH_S * 1000)
    world.is_down = True
    assert commit(world, 9) == ErrorCode.NONE


@pytest.mark.parametrize("version", [7, 9])
def test_who_has_committed_nothing_needs_no_topic_for_a_read(version: int) -> None:
    world = World()
    world.is_down = True
    assert committed(world, version) == -1


def test_a_commit_that_cannot_be_checked_is_not_answered() -> None:
    world = World()
    world.is_down = True
    with pytest.raises(Refused, match="names topics that cannot be asked for: down"):
        commit(world, 9)


@pytest.mark.parametrize("is_forgotten", [True, False])
def test_all_offsets_of_a_group_by_topic_id(*, is_forgotten: bool) -> None:
    """Also after a start, when no topic is known yet."""
    world = World()
    world.upstream_topics["t"] = TOPIC_ID
    commit(world, 9)
    if is_forgotten:
        world.topics.by_name.clear()
        world.topics.by_id.clear()
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),))
    (group,) = world.ask(ApiKey.OFFSET_FETCH, 10, request).groups
    found = [(topic.topic_id, topic.partitions[0].committed_offset) for topic in group.topics]
    assert found == [(TOPIC_ID, 5)]


def upstream_versions() -> ApiVersionsResponse:
    served = tuple(
        ApiVersion(api_key=key, min_version=0, max_version=versions[-1]) for key, versions in VERSIONS.items()
    )
    features = (
        SupportedFeatureKey(name="metadata.version", min_version=7, max_version=29),
        SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1),
    )
    return ApiVersionsResponse(api_keys=served, supported_features=features)


class Link:
    """One to a broker that has answered ApiVersions."""

    def __init__(self) -> None:
        self.answered = upstream_versions()
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


@pytest.mark.parametrize("version", VERSIONS[ApiKey.API_VERSIONS])
def test_a_client_that_has_not_authenticated_learns_of_versions_without_a_connection(version: int) -> None:
    world, link = World(), Link()
    request = ApiVersionsRequest(client_software_name="s", client_software_version="1")
    inside = world.forwarded(ApiKey.API_VERSIONS, version, request, upstream_versions())
    world.relay.passage.sent.clear()
    world.relay.is_let_in = False
    waiting = world.send(ApiKey.API_VERSIONS, version, request)
    world.link.callback(link)
    told = [decode_response(ApiKey.API_VERSIONS, version, bytes(result(waiting)))[1]]
    told += [world.ask(ApiKey.API_VERSIONS, version, request) for _ in range(300)]
    assert world.linked == [1], "kshim asks the broker itself, once"
    assert not link.is_open
    assert world.client.software == ("s 1" if version >= 3 else "")
    names = [each.name for each in told[0].supported_features]
    shown = {0: 0, 1: 0, 2: 0, 3: 1}.get(version, 2)
    assert names == ["metadata.version", "kraft.version"][:shown]
    assert all(each == told[0] for each in told)
    assert told[0].api_keys == inside.api_keys


def expecting(node_id: int) -> ApiVersionsRequest:
    """A request of a client that connects to this node of cluster "c" (KIP-1242)."""
    named = {"client_software_name": "s", "client_software_version": "1"}
    return ApiVersionsRequest(cluster_id="c", node_id=node_id, **named)


@pytest.mark.parametrize(
    ("expected", "passed_on"), [(-1, -1), (1, 1), (2, 2), (OURSELVES.node_id, 1), (OTHER.node_id, 1001)]
)
def test_a_client_may_expect_kshim_s_own_node_at_the_port_of_a_broker(expected: int, passed_on: int) -> None:
    """It has found its group's coordinator there. The broker knows only its own node id."""
    world = World()
    request = ApiVersionsRequest(client_software_name="s", client_software_version="1")
    world.send(ApiKey.API_VERSIONS, 5, expecting(expected) if expected != -1 else request, at=1)
    (frame,) = world.passage.sent
    header, passed = decode_request(frame, 100)
    assert (header.correlation_id, passed.node_id) == (7, passed_on)


@pytest.mark.parametrize("expected", [1, OURSELVES.node_id, 2, OTHER.node_id])
def test_a_client_that_has_not_authenticated_may_expect_the_same(expected: int) -> None:
    world, link = World(), Link()
    world.here.cluster.update("c", (1, 2))
    world.relay.is_let_in = False
    world.link.callback(link)
    answer = world.ask(ApiKey.API_VERSIONS, 5, expecting(expected), at=1)
    is_here = expected in (1, OURSELVES.node_id)
    assert answer.error_code == (ErrorCode.NONE if is_here else ErrorCode.REBOOTSTRAP_REQUIRED)


def test_its_name_is_checked_as_by_kafka() -> None:
    world = World()
    world.relay.is_let_in = False
    request = ApiVersionsRequest(client_software_name="-", client_software_version="1")
    answer = world.ask(ApiKey.API_VERSIONS, 3, request)
    assert (answer.error_code, world.linked) == (ErrorCode.INVALID_REQUEST, [])


def test_a_broker_that_does_not_answer_closes_its_connection() -> None:
    world = World()
    world.relay.is_let_in = False
    waiting = world.send(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    world.link.errback(LinkError("broker 1 is gone"))
    with pytest.raises(Refused, match="cannot be answered: broker 1 is gone"):
        result(waiting)
    with pytest.raises(Refused, match="broker 1 is gone"):
        result(world.send(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()))
    assert world.linked == [1]


def test_a_request_of_a_client_that_has_left_goes_nowhere() -> None:
    world = World()
    gone = replace(world.client)
    with pytest.raises(Refused, match="has left before its request was answered") as caught:
        world.front.answer(world.here, ApiKey.FETCH.to_bytes(2) + bytes(40), gone, Turn())
    assert caught.value.level == logging.DEBUG
    assert not world.passage.sent


def test_a_coordinator_tells_its_versions_without_the_broker_of_its_port() -> None:
    """That broker may be down, and the group's members have to come nevertheless."""
    world = World()
    world.shards.elsewhere = set()
    anchor = world.brokers.anchor
    world.brokers.running = (3 - anchor,)
    request = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.16.1")
    answer = later(world.send(ApiKey.API_VERSIONS, 3, request, anchor))
    assert not world.passage.sent
    failed, world.link = world.link, Deferred()
    failed.errback(LinkError("gone"))
    world.link.callback(SimpleNamespace(answered=ApiVersionsResponse(), close=lambda: None))
    assert world.linked == [anchor, 3 - anchor]
    told = decode_response(ApiKey.API_VERSIONS, 3, bytes(result(answer)))[1]
    assert told.error_code == ErrorCode.NONE
    assert ApiKey.JOIN_GROUP in {each.api_key for each in told.api_keys}
    assert world.client.software == "librdkafka 2.16.1"
    world.send(ApiKey.API_VERSIONS, 3, request, 3 - anchor)
    assert world.passage.sent, "at the other ports the broker answers"
