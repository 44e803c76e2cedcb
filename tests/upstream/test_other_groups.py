"""Requests about share groups and streams groups go to the upstream's coordinators."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kshim.callers import Refused
from kshim.configs.endpoint import Endpoint
from kshim.turns import Turn
from kshim.upstream.raw import written
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from schemas.messages.api_versions import ApiVersion, ApiVersionsResponse
from schemas.messages.offset_commit import OffsetCommitRequest
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from schemas.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from schemas.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from schemas.registry import decode_response, encode_response
from tests.api.harness import PENDING, advance, later, result
from tests.upstream.front_world import TOPIC_ID, World, commit, join
from tests.upstream.kafka_groups import Group
from tests.upstream.raw_bytes import request, string

HEAD = (7).to_bytes(4) + b"\0" + bytes(4)


class Coordinators:
    """Those of the upstream: each answers with the groups that it is asked for."""

    def __init__(self, world: World) -> None:
        self.asked: list[tuple[Endpoint, bytes]] = []
        world.kafka.frames = self._answer

    def _answer(self, address: Endpoint, frame: bytes) -> bytes:
        self.asked.append((address, bytes(frame)))
        return HEAD + written(1) + b"<" + str(address.host[-1]).encode() + b">" + b"\0"


def settled(world: World, answer: Any) -> bytes:
    found = later(answer)
    for _ in range(20):
        advance(world.here)
    reply = result(found)
    assert reply is not PENDING
    return bytes(reply)


def send_frame(world: World, frame: bytes) -> bytes:
    broker = replace(world.here, node_id=1)
    return settled(world, world.front.answer(broker, frame, world.client, Turn()))


def heartbeat(world: World, group_id: str = "s") -> bytes:
    request = StreamsGroupHeartbeatRequest(group_id=group_id, member_id="m", member_epoch=1)
    return settled(world, world.send(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request))


@pytest.mark.parametrize("group_id", ["even", "odd"])
def test_a_heartbeat_goes_to_the_coordinator_of_its_group(group_id: str) -> None:
    world = World()
    coordinators = Coordinators(world)
    request = ShareGroupHeartbeatRequest(group_id=group_id, member_id="m", member_epoch=0)
    reply = settled(world, world.send(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request))
    ((address, _),) = coordinators.asked
    assert address == world.kafka.at(group_id)
    assert reply.endswith(b">\0")
    assert not world.passage.sent


def test_groups_of_several_coordinators_are_described_at_once() -> None:
    world = World()
    coordinators = Coordinators(world)
    body = written(3) + string("even") + string("odd") + string("four") + b"\0" + b"\0"
    reply = send_frame(world, request(ApiKey.SHARE_GROUP_DESCRIBE, body))
    assert {frame for _, frame in coordinators.asked} == {
        request(ApiKey.SHARE_GROUP_DESCRIBE, written(2) + string("even") + string("four") + b"\0" + b"\0"),
        request(ApiKey.SHARE_GROUP_DESCRIBE, written(1) + string("odd") + b"\0" + b"\0"),
    }
    assert reply in (HEAD + written(2) + b"<1><2>\0", HEAD + written(2) + b"<2><1>\0")


@pytest.mark.parametrize(
    ("key", "version", "new"),
    [
        (ApiKey.SHARE_GROUP_HEARTBEAT, 1, ShareGroupHeartbeatRequest),
        (ApiKey.STREAMS_GROUP_HEARTBEAT, 1, StreamsGroupHeartbeatRequest),
    ],
)
def test_a_member_hears_that_there_is_no_coordinator(key: ApiKey, version: int, new: Any) -> None:
    world = World()
    world.kafka.finding = ErrorCode.COORDINATOR_NOT_AVAILABLE
    reply = settled(world, world.send(key, version, new(group_id="g", member_id="m", member_epoch=0)))
    assert decode_response(key, version, reply)[1].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("body", [written(0) + b"\0\0", b"\3"])
def test_what_cannot_be_passed_on_is_refused(body: bytes) -> None:
    world = World()
    with pytest.raises(Refused):
        send_frame(world, request(ApiKey.SHARE_GROUP_DESCRIBE, body))
    world.kafka.is_down = True
    with pytest.raises(Refused, match="cannot be passed on"):
        heartbeat(world)


# ---- offsets of streams groups


def fetch_request(group_id: str) -> OffsetFetchRequest:
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=topics),))


def test_offsets_of_a_streams_group_are_the_upstream_s() -> None:
    world = World()
    coordinators = Coordinators(world)
    heartbeat(world)
    settled(world, world.send(ApiKey.OFFSET_COMMIT, 9, OffsetCommitRequest(group_id="s", member_id="m")))
    settled(world, world.send(ApiKey.OFFSET_FETCH, 9, fetch_request("s")))
    keys = [int.from_bytes(frame[:2]) for _, frame in coordinators.asked]
    assert keys == [ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH]
    assert world.groups.see("s") is None
    world.upstream_topics["t"] = TOPIC_ID
    assert commit(world, 9, "g") == ErrorCode.NONE, "other groups are kshim's"
    assert len(coordinators.asked) == 3


def test_a_streams_group_is_added_to_a_transaction_as_it_is() -> None:
    world = World()
    Coordinators(world)
    heartbeat(world)
    for group_id, key in (("s", ApiKey.ADD_OFFSETS_TO_TXN), ("g", ApiKey.ADD_PARTITIONS_TO_TXN)):
        request = AddOffsetsToTxnRequest(transactional_id="t", group_id=group_id)
        world.send(ApiKey.ADD_OFFSETS_TO_TXN, 3, request)
        assert int.from_bytes(world.passage.sent[-1][:2]) == key


def versions(*api_keys: ApiKey) -> SimpleNamespace:
    """The upstream's answer to ApiVersions."""
    answered = ApiVersionsResponse(api_keys=tuple(ApiVersion(api_key=each) for each in api_keys))
    return SimpleNamespace(answered=answered, close=lambda: None)


def add_to_transaction(world: World, error_there: ErrorCode, *told: ApiKey) -> tuple[list[int], int]:
    """Add group "s" to a transaction; return the requests that reach the upstream, and the answer's error."""
    world.link.callback(versions(*told))
    answer = later(
        world.send(ApiKey.ADD_OFFSETS_TO_TXN, 3, AddOffsetsToTxnRequest(transactional_id="t", group_id="s"))
    )
    partition = AddPartitionsToTxnPartitionResult(partition_index=0)
    topic = AddPartitionsToTxnTopicResult(name="groups", results_by_partition=(partition,))
    added = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=(topic,))
    world.passage.promise.answer_alone(encode_response(ApiKey.ADD_PARTITIONS_TO_TXN, 3, 7, added))
    if len(world.passage.sent) > 1:
        there = AddOffsetsToTxnResponse(error_code=error_there)
        world.passage.promise.answer_alone(encode_response(ApiKey.ADD_OFFSETS_TO_TXN, 3, 7, there))
    response = decode_response(ApiKey.ADD_OFFSETS_TO_TXN, 3, bytes(result(answer)))[1]
    return [int.from_bytes(each[:2]) for each in world.passage.sent], response.error_code


@pytest.mark.parametrize(
    ("there", "answered"),
    [
        (ErrorCode.NONE, ErrorCode.NONE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        # kshim may lack the right on a classic group
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.NONE),
    ],
)
def test_a_streams_group_of_another_kshim_is_added_at_both_sides(
    there: ErrorCode, answered: ErrorCode
) -> None:
    """Its heartbeats go to the kshim that coordinates it; the transaction's coordinator is at this one."""
    sent, error = add_to_transaction(World(), there, ApiKey.STREAMS_GROUP_HEARTBEAT)
    assert sent == [ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN]
    assert error == answered


def test_an_upstream_without_streams_groups_has_none_to_add() -> None:
    sent, error = add_to_transaction(World(), ErrorCode.UNKNOWN_SERVER_ERROR, ApiKey.HEARTBEAT)
    assert (sent, error) == ([ApiKey.ADD_PARTITIONS_TO_TXN], ErrorCode.NONE)


def test_a_group_that_kshim_has_is_added_here_alone() -> None:
    world = World()
    join(world, "s")
    sent, _ = add_to_transaction(world, ErrorCode.UNKNOWN_SERVER_ERROR, ApiKey.STREAMS_GROUP_HEARTBEAT)
    assert sent == [ApiKey.ADD_PARTITIONS_TO_TXN]


def test_offsets_of_a_streams_group_are_not_adopted() -> None:
    """A member may ask before its first heartbeat, after kshim has started again."""
    world = World(adopts=True)
    world.upstream_topics["t"] = TOPIC_ID
    world.kafka.groups["s"] = Group(type="streams", offsets={("t", 0): (7, -1, "")})
    coordinators = Coordinators(world)
    reply = settled(world, world.send(ApiKey.OFFSET_FETCH, 9, fetch_request("s")))
    (group,) = decode_response(ApiKey.OFFSET_FETCH, 9, reply)[1].groups
    assert ErrorCode(group.error_code).retriable
    assert world.groups.see("s") is None
    settled(world, world.send(ApiKey.OFFSET_FETCH, 9, fetch_request("s")))
    assert len(coordinators.asked) == 1
