"""Shards: which one has a group, and the answers while it is loading or not led here."""

from typing import Any

import pytest

from kshim.coordination.decision import Caller
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, MemberHeartbeat
from kshim.coordination.groups.coordinator import Coordinator
from kshim.coordination.groups.operations import OPERATIONS
from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup, StableOffsetFetch, WaitingHeartbeat
from kshim.coordination.groups.settings import Settings
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.shards import LONG, _for_long, _for_short, partition_for
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from schemas.messages.delete_groups import DeletableGroupResult
from schemas.messages.describe_groups import DescribedGroup
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from schemas.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from schemas.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.coordination.groups.history import LATEST, History, protocols

NOW_MS = 1_000


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("", 0),
        ("foo", 24),
        ("grp", 29),
        ("group-id", 13),
        ("my-group", 12),
        ("polygenelubricants", 0),
        ("group-日本", 5),
        ("grp-😀", 13),
        ("connect-cluster", 13),
    ],
)
def test_the_partition_of_a_group_is_java_s(group_id: str, partition: int) -> None:
    """[125]"""
    assert partition_for(group_id, 50) == partition


def test_a_lone_surrogate_has_a_partition() -> None:
    assert 0 <= partition_for("group-\ud83d", 50) < 50


def test_few_long_names_are_remembered() -> None:
    names = [f"{n}-".ljust(LONG, "g") for n in range(1_000)]
    before = _for_short.cache_info()
    found = [partition_for(name, 50) for name in names]
    assert found == [partition_for(name, 50) for name in names]
    assert set(found) == set(range(50))
    assert _for_short.cache_info() == before
    assert _for_long.cache_info().currsize < 100


def test_ids_spread_over_all_partitions() -> None:
    assert {partition_for(f"group-{n}", 50) for n in range(1_000)} == set(range(50))


REQUESTS: list[Any] = [
    JoinGroupRequest(
        group_id="group",
        session_timeout_ms=10_000,
        member_id="m",
        protocol_type="consumer",
        protocols=protocols("range"),
    ),
    SyncGroupRequest(group_id="group", generation_id=1, member_id="m"),
    HeartbeatRequest(group_id="group", generation_id=1, member_id="m"),
    WaitingHeartbeat(HeartbeatRequest(group_id="group", generation_id=1, member_id="m")),
    LeaveGroupRequest(group_id="group", members=(MemberIdentity(member_id="m"),)),
    OffsetCommitRequest(
        group_id="group",
        topics=(
            OffsetCommitRequestTopic(
                name="topic",
                partitions=(OffsetCommitRequestPartition(partition_index=3, committed_offset=1),),
            ),
        ),
    ),
    OffsetFetchRequestGroup(group_id="group", topics=None),
    StableOffsetFetch(OffsetFetchRequestGroup(group_id="group", topics=None)),
    TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="group",
        producer_id=7,
        producer_epoch=0,
        topics=(
            TxnOffsetCommitRequestTopic(
                name="topic",
                partitions=(TxnOffsetCommitRequestPartition(partition_index=3, committed_offset=1),),
            ),
        ),
    ),
    OffsetDeleteRequest(group_id="group"),
    DescribeGroup("group"),
    DeleteGroup("group"),
    ForceRebalance("group"),
    ExpireMember("group", "m"),
    FenceMember("group", "i"),
    MemberHeartbeat(ConsumerGroupHeartbeatRequest(group_id="group", member_id="m", member_epoch=1)),
    DescribeConsumerGroup("group"),
]


def refusals(error: ErrorCode) -> list[Any]:
    """The answers that a request gets without asking the group."""
    return [
        JoinGroupResponse(error_code=error, generation_id=-1, member_id="m"),
        SyncGroupResponse(error_code=error),
        HeartbeatResponse(error_code=error),
        HeartbeatResponse(error_code=error),
        LeaveGroupResponse(error_code=error, members=()),
        OffsetCommitResponse(
            topics=(
                OffsetCommitResponseTopic(
                    name="topic",
                    partitions=(OffsetCommitResponsePartition(partition_index=3, error_code=error),),
                ),
            )
        ),
        OffsetFetchResponseGroup(group_id="group", error_code=error),
        OffsetFetchResponseGroup(group_id="group", error_code=error),
        TxnOffsetCommitResponse(
            topics=(
                TxnOffsetCommitResponseTopic(
                    name="topic",
                    partitions=(TxnOffsetCommitResponsePartition(partition_index=3, error_code=error),),
                ),
            )
        ),
        OffsetDeleteResponse(error_code=error),
        DescribedGroup(group_id="group", error_code=error),
        DeletableGroupResult(group_id="group", error_code=error),
        error,
        error,
        error,
        ConsumerGroupHeartbeatResponse(error_code=error),
        DescribedConsumerGroup(group_id="group", error_code=error),
    ]


def answers(coordinator: Coordinator) -> list[Any]:
    decided = [
        coordinator.handle(Caller(n, LATEST[type(request)]), request, NOW_MS)
        for n, request in enumerate(REQUESTS)
    ]
    assert [decision.records for decision in decided] == [()] * len(REQUESTS)
    assert [[reply.token for reply in decision.replies] for decision in decided] == [
        [n] for n in range(len(REQUESTS))
    ]
    return [decision.replies[0].response for decision in decided]


def new_coordinator(**settings: int) -> Coordinator:
    return Coordinator(Settings(**settings), lambda prefix: f"{prefix}-id", partitions=2)


def test_every_request_that_a_shard_answers_is_tried_here() -> None:
    assert {type(request) for request in REQUESTS} == OPERATIONS.keys()


def test_a_shard_that_is_not_led_here() -> None:
    """[126]"""
    assert answers(new_coordinator()) == refusals(ErrorCode.NOT_COORDINATOR)


def test_a_shard_that_is_loading() -> None:
    """[95] [117] [166]: heartbeats succeed and SyncGroups are sent back, because other answers make clients
    give up."""
    coordinator = new_coordinator()
    coordinator.begin_load(coordinator.shard_for("group"))
    expected = refusals(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    expected[1] = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    expected[2] = expected[3] = HeartbeatResponse(error_code=ErrorCode.NONE)
    assert answers(coordinator) == expected


def test_groups_of_other_shards_are_served_meanwhile() -> None:
    """[166]"""
    coordinator = new_coordinator()
    loading = coordinator.shard_for("group")
    other = next(f"g{n}" for n in range(9) if coordinator.shard_for(f"g{n}") != loading)
    coordinator.begin_load(loading)
    coordinator.begin_load(1 - loading)
    coordinator.finish_load(1 - loading, NOW_MS)
    decision = coordinator.handle(Caller(1, 6), DescribeGroup(other), NOW_MS)
    assert decision.replies[0].response.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_are_listed_when_all_shards_are_loaded() -> None:
    """[119]"""
    coordinator = new_coordinator()
    assert coordinator.list_groups(ListGroupsRequest()).error_code == ErrorCode.NONE
    coordinator.begin_load(0)
    answer = coordinator.list_groups(ListGroupsRequest())
    assert (answer.error_code, answer.groups) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ())
    coordinator.finish_load(0, NOW_MS)
    assert coordinator.list_groups(ListGroupsRequest()).error_code == ErrorCode.NONE


class TestBeforeTheGroupIsAsked:
    def test_an_empty_group_id(self, history: History) -> None:
        """[17] [105] [121]"""
        client = history.client(group_id="", member_id="m", generation_id=1)
        assert client.answer(client.join()) == JoinGroupResponse(
            error_code=ErrorCode.INVALID_GROUP_ID, member_id="m"
        )
        assert client.answer(client.sync()) == SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        assert client.heartbeat() == ErrorCode.INVALID_GROUP_ID
        request = LeaveGroupRequest(group_id="", members=(MemberIdentity(member_id="m"),))
        assert history.ask(request) == LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        assert history.ask(DescribeGroup("")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert history.ask(DeleteGroup("")).error_code == ErrorCode.GROUP_ID_NOT_FOUND

    def test_it_is_checked_before_the_shard_s_leader(self) -> None:
        request = HeartbeatRequest(group_id="", generation_id=1, member_id="m")
        decision = new_coordinator().handle(Caller(0, 4), request, NOW_MS)
        assert decision.replies[0].response.error_code == ErrorCode.INVALID_GROUP_ID

    @pytest.mark.parametrize(
        ("session_timeout_ms", "accepted"), [(5_999, False), (6_000, True), (30_000, True), (30_001, False)]
    )
    def test_the_limits_of_the_session_timeout(self, session_timeout_ms: int, accepted: bool) -> None:
        """[18]"""
        history = History(group_max_session_timeout_ms=30_000)
        client = history.client(session_timeout_ms=session_timeout_ms)
        error = ErrorCode.MEMBER_ID_REQUIRED if accepted else ErrorCode.INVALID_SESSION_TIMEOUT
        assert client.error(client.join()) == error
        assert bool(history.groups()) == accepted


class TestUnload:
    def test_parked_requests_are_answered_and_nothing_is_left(self, history: History) -> None:
        """[124]"""
        completing = [history.client("completing") for _ in range(2)]
        for client in completing:
            client.enter()
        history.sleep(6_000)
        syncing = completing[1].sync()
        joining = [history.client("joining") for _ in range(2)]
        tokens = [client.enter() for client in joining]
        history.client("joining").join()
        history.resign()
        assert history.answer(syncing) == SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
        for client, token in zip(joining, tokens, strict=True):
            assert history.answer(token) == JoinGroupResponse(
                error_code=ErrorCode.NOT_COORDINATOR, member_id=client.member_id
            )
        assert history.parked == set()
        assert history.coordinator._timers._deadlines_ms == {}
        history.sleep(10_000_000)
        assert history.coordinator.next_deadline_ms() is None
