"""Requests about groups of clients that authenticate at the upstream, which says what each may do."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from twisted.internet.defer import succeed

from kshim.callers import Refused
from kshim.cluster.acl import CLUSTER_NAME, AclOperation, AclResource
from kshim.turns.promise import Promise
from kshim.upstream.fellows import port_id
from kshim.upstream.needed_rights import NEEDED
from kshim.upstream.rights import COUNTS_S, Right
from kshim.upstream.table import TABLE, Way
from kshim.upstream.topics import LOOK_S
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from schemas.messages.api_versions import ApiVersion, ApiVersionsResponse
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.delete_groups import DeleteGroupsRequest
from schemas.messages.describe_cluster import DescribeClusterResponse
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.end_txn import EndTxnResponse
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.metadata import MetadataResponse, MetadataResponseTopic
from schemas.messages.offset_delete import OffsetDeleteResponse
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from schemas.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from schemas.registry import decode_request, decode_response, encode_response
from tests.api.harness import advance, later, result
from tests.upstream.consumer_members import ALARM_S, A, B, had
from tests.upstream.front_world import OTHER, SHARDS, TOPIC_ID, World, commit

READ, DESCRIBE, DELETE = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE
GROUP, TOPIC, CLUSTER = AclResource.GROUP, AclResource.TOPIC, AclResource.CLUSTER
OURS_WITHOUT_RIGHTS = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
ASKED_OTHERWISE = {ApiKey.LIST_GROUPS}
"""The port asks about the groups that it lists."""
NONE, GROUP_DENIED = ErrorCode.NONE, ErrorCode.GROUP_AUTHORIZATION_FAILED


class Judged(World):
    """The upstream allows the client what is in `allowed`."""

    def __init__(self, *allowed: Right, **config: Any) -> None:
        super().__init__(judges=True, **config)
        self.allowed = set(allowed)
        self.questions: list[Any] = []
        self.passage.judge = self.judge

    def _connect(self, node_id: int) -> Any:
        key = ApiKey.FIND_COORDINATOR
        known = ApiVersionsResponse(api_keys=(ApiVersion(api_key=key, min_version=0, max_version=4),))
        return succeed(SimpleNamespace(answered=known, close=lambda: None))

    def may(self, operation: AclOperation, resource: AclResource, name: str = CLUSTER_NAME) -> bool:
        return Right(operation, resource, name) in self.allowed

    def pass_s(self, for_s: float) -> None:
        advance(self.here, for_s * 1000)
        for _ in range(20):
            advance(self.here)

    def judge(self, frame: bytes) -> Promise[Any]:
        header, request = decode_request(frame, 10_000)
        key = ApiKey(header.api_key)
        self.questions.append(request)
        answer: Promise[Any] = Promise()
        response = getattr(self, f"_{key.name.lower()}")(request)
        answer.answer(encode_response(key, header.api_version, header.correlation_id, response))
        return answer

    def _error(self, operation: AclOperation, name: str, otherwise: ErrorCode) -> ErrorCode:
        return otherwise if self.may(operation, GROUP, name) else GROUP_DENIED

    def _heartbeat(self, request: Any) -> Any:
        return HeartbeatResponse(error_code=self._error(READ, request.group_id, ErrorCode.NOT_COORDINATOR))

    def _offset_delete(self, request: Any) -> Any:
        return OffsetDeleteResponse(error_code=self._error(DELETE, request.group_id, NONE))

    def _end_txn(self, request: Any) -> Any:
        may = self.may(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, request.transactional_id)
        denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_ID_MAPPING if may else denied)

    def _find_coordinator(self, request: Any) -> Any:
        return FindCoordinatorResponse(
            coordinators=tuple(
                Coordinator(key=each, node_id=2, error_code=self._error(DESCRIBE, each, NONE))
                for each in request.coordinator_keys
            )
        )

    def _describe_cluster(self, _: Any) -> Any:
        bits = 1 << DESCRIBE if self.may(DESCRIBE, CLUSTER) else 0
        return DescribeClusterResponse(cluster_authorized_operations=bits)

    def _metadata(self, request: Any) -> Any:
        def found(name: str) -> MetadataResponseTopic:
            bits = sum(1 << each for each in (READ, DESCRIBE) if self.may(each, TOPIC, name))
            error = NONE if self.may(DESCRIBE, TOPIC, name) else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return MetadataResponseTopic(
                name=name, error_code=error, topic_authorized_operations=bits, partitions=()
            )

        if request.topics is None:
            names = [name for name in self.upstream_topics if self.may(DESCRIBE, TOPIC, name)]
        else:
            names = [each.name for each in request.topics]
        return MetadataResponse(topics=tuple(found(name) for name in names))

    def heartbeat(self) -> ErrorCode:
        request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        return ErrorCode(self.ask(ApiKey.HEARTBEAT, 4, request).error_code)


def test_the_upstream_is_asked_for_the_rights_of_every_request_that_kshim_answers() -> None:
    ours = {api_key for api_key, entry in TABLE.items() if entry.way is Way.OURS}
    assert ours - OURS_WITHOUT_RIGHTS - ASKED_OTHERWISE == NEEDED.keys()


def test_a_group_that_the_client_may_not_read() -> None:
    world = Judged()
    assert world.heartbeat() is GROUP_DENIED
    assert world.questions == [HeartbeatRequest(group_id="g", generation_id=-1, member_id="")]


def test_an_answer_counts_for_some_seconds() -> None:
    world = Judged(Right(READ, GROUP, "g"))
    assert world.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    world.allowed.clear()
    assert world.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    advance(world.here, 1000 * COUNTS_S)
    assert world.heartbeat() is GROUP_DENIED
    assert len(world.questions) == 2


@pytest.mark.parametrize(
    ("allowed", "error"),
    [
        ([], GROUP_DENIED),
        ([Right(READ, TOPIC, "t")], GROUP_DENIED),
        ([Right(READ, GROUP, "g")], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ([Right(READ, GROUP, "g"), Right(READ, TOPIC, "t"), Right(DESCRIBE, TOPIC, "t")], NONE),
    ],
    ids=str,
)
@pytest.mark.parametrize("version", [9, 10], ids=["by name", "by id"])
def test_a_commit_needs_the_group_and_the_topic(allowed: list[Right], error: ErrorCode, version: int) -> None:
    world = Judged(*allowed)
    world.upstream_topics["t"] = TOPIC_ID
    assert commit(world, version) == error


def fetched(world: World, *topics: str) -> dict[str, int]:
    """The errors of topics, by name."""
    asked = tuple(OffsetFetchRequestTopics(name=each, partition_indexes=(0,)) for each in topics)
    group = OffsetFetchRequestGroup(group_id="g", topics=asked or None)
    (answer,) = world.ask(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=(group,))).groups
    return {each.name: each.partitions[0].error_code for each in answer.topics} or {"": answer.error_code}


def test_offsets_of_topics_that_the_client_may_describe() -> None:
    """Topics that only the answer names are asked for, too."""
    everything = [
        Right(READ, GROUP, "g"),
        Right(DESCRIBE, GROUP, "g"),
        Right(READ, TOPIC, "t"),
        Right(DESCRIBE, TOPIC, "t"),
    ]
    world = Judged(*everything)
    world.upstream_topics["t"] = TOPIC_ID
    assert commit(world, 9) == NONE
    assert fetched(world) == fetched(world, "t") == {"t": NONE}
    advance(world.here, 1000 * COUNTS_S)
    world.allowed.remove(Right(DESCRIBE, TOPIC, "t"))
    assert fetched(world) == {"": NONE}
    assert fetched(world, "t") == {"t": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    advance(world.here, 1000 * COUNTS_S)
    world.allowed.clear()
    assert fetched(world) == {"": GROUP_DENIED}


def test_groups_are_described_with_what_the_client_may_do() -> None:
    world = Judged(Right(DESCRIBE, GROUP, "g"), Right(DELETE, GROUP, "g"))
    request = DescribeGroupsRequest(groups=("g", "other"), include_authorized_operations=True)
    mine, other = world.ask(ApiKey.DESCRIBE_GROUPS, 5, request).groups
    assert (mine.error_code, mine.authorized_operations) == (NONE, 1 << DESCRIBE | 1 << DELETE)
    assert (other.group_id, other.error_code) == ("other", GROUP_DENIED)


def test_a_group_is_deleted_only_by_those_who_may() -> None:
    world = Judged(Right(DELETE, GROUP, "g"))
    request = DeleteGroupsRequest(groups_names=("g", "other"))
    answered = world.ask(ApiKey.DELETE_GROUPS, 2, request).results
    assert {each.group_id: each.error_code for each in answered} == {
        "g": ErrorCode.GROUP_ID_NOT_FOUND,
        "other": GROUP_DENIED,
    }


@pytest.mark.parametrize(
    ("allowed", "seen"),
    [
        ([], []),
        ([Right(DESCRIBE, GROUP, "g")], ["g"]),
        ([Right(DESCRIBE, CLUSTER)], ["g", "h"]),
    ],
    ids=str,
)
def test_a_list_has_the_groups_that_the_client_may_describe(allowed: list[Right], seen: list[str]) -> None:
    world = Judged(Right(READ, GROUP, "g"), Right(READ, GROUP, "h"))
    for group_id in ("g", "h"):
        later(world.send(ApiKey.JOIN_GROUP, 3, joining(group_id)))
    advance(world.here)
    world.allowed = set(allowed)
    listed = [
        each.group_id
        for at in (1, 2)
        for each in world.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest(), at).groups
    ]
    assert sorted(listed) == seen


def beat(world: Judged, epoch: int, **fields: Any) -> Any:
    """The answer to a heartbeat of a member of the consumer protocol."""
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch, **fields)
    answer = later(world.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request))
    world.pass_s(ALARM_S)
    return decode_response(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, bytes(result(answer)))[1]


def joining(group_id: str) -> Any:
    from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )


def test_a_coordinator_is_found_at_the_port_of_the_upstreams() -> None:
    """The client asks the upstream itself; a refusal stays. Share groups are reached at that port, too."""
    world = Judged()
    request = FindCoordinatorRequest(coordinator_keys=("g", "h", "denied"))
    theirs = FindCoordinatorResponse(
        coordinators=(
            Coordinator(key="g", node_id=2, host="10.0.0.2", port=9092),
            Coordinator(key="h", node_id=1, host="10.0.0.1", port=9092),
            Coordinator(key="denied", node_id=-1, error_code=GROUP_DENIED),
        )
    )
    found = world.forwarded(ApiKey.FIND_COORDINATOR, 4, request, theirs).coordinators
    assert [(each.node_id, each.port, each.error_code) for each in found] == [
        (2, 9101, NONE),
        (1, 9100, NONE),
        (-1, 0, GROUP_DENIED),
    ]


@pytest.mark.parametrize(("at", "node_id", "port"), [(1, port_id(OTHER, 1), 9201), (2, OTHER.node_id, 9200)])
def test_at_another_kshim_it_is_the_port_of_the_upstreams_coordinator_too(
    at: int, node_id: int, port: int
) -> None:
    world = Judged()
    world.shards.elsewhere = set(range(SHARDS))
    request = FindCoordinatorRequest(key="g")
    theirs = FindCoordinatorResponse(node_id=at, host="10.0.0.9", port=9092)
    found = world.forwarded(ApiKey.FIND_COORDINATOR, 3, request, theirs)
    assert (found.node_id, found.host, found.port) == (node_id, "other", port)


def test_other_groups_go_on_over_the_clients_own_connection() -> None:
    world = Judged()
    request = ShareGroupHeartbeatRequest(group_id="s", member_id="m", member_epoch=0)
    world.send(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
    assert len(world.passage.sent) == 1


def test_a_group_is_handed_over_to_the_upstream_only_by_those_who_may_use_it() -> None:
    """Where the upstream serves the consumer protocol, the first member takes the group along."""
    world = Judged(upstream_groups_protocols="classic")
    assert beat(world, 0, topic_partitions=(), rebalance_timeout_ms=60_000).error_code == GROUP_DENIED
    assert world.passage.sent == []
    world = Judged(Right(READ, GROUP, "g"), upstream_groups_protocols="classic")
    heartbeat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
    world.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat)
    assert len(world.passage.sent) == 1  # over the client's own connection


def test_offsets_are_added_to_a_transaction_if_the_upstream_lets_the_client() -> None:
    world = Judged()
    request = AddOffsetsToTxnRequest(transactional_id="x", producer_id=1, producer_epoch=0, group_id="g")
    denied = AddOffsetsToTxnResponse(error_code=GROUP_DENIED)
    assert world.forwarded(ApiKey.ADD_OFFSETS_TO_TXN, 3, request, denied).error_code == GROUP_DENIED


def test_an_answer_that_says_nothing_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Judged(Right(READ, GROUP, "g"))
    failed = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    monkeypatch.setattr(world, "_heartbeat", lambda _: failed)
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    with pytest.raises(Refused, match="does not say what it may do"):
        result(later(world.send(ApiKey.HEARTBEAT, 4, request)))


def test_an_expression_matches_the_topics_that_a_member_may_describe() -> None:
    """Those that are created later, too."""
    c, d = UUID(int=12), UUID(int=13)
    world = Judged(Right(READ, GROUP, "g"), Right(DESCRIBE, TOPIC, "a"), Right(DESCRIBE, TOPIC, "c"))
    world.upstream_topics |= {"a": A, "b": B}
    world.every.created = world.groups.topics_created
    world.every.start()
    joined = beat(world, 0, subscribed_topic_regex=".*", topic_partitions=(), rebalance_timeout_ms=60_000)
    world.pass_s(0)
    answer = beat(world, joined.member_epoch)
    assert had(answer) == {A: (0,)}
    world.upstream_topics |= {"c": c, "d": d}
    world.pass_s(LOOK_S)
    assert had(beat(world, answer.member_epoch)) == {A: (0,), c: (0,)}
    world.every.stop()


def test_what_is_known_of_one_client_does_not_count_for_another() -> None:
    world = Judged(Right(READ, GROUP, "g"))
    assert world.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    other = type(world.relay)()
    other.passage.judge = world.judge
    bob = replace(world.client)
    other.client = bob
    world.allowed.clear()
    world.front._relays[bob] = other
    world.client = bob
    assert world.heartbeat() is GROUP_DENIED
