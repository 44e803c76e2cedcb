"""Committed offsets, told to the upstream."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kshim.configs.endpoint import Endpoint
from kshim.requests.once import Once
from kshim.upstream.coordinators import UpstreamCoordinators
from kshim.upstream.link import LinkError
from kshim.upstream.shards.mirrored import FLUSH_S, MOST_AT_ONCE, MirroredOffsets
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from schemas.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from tests.api.harness import result

Offsets = dict[tuple[str, str, int], int]


def commit(group: str, partition: int, offset: int | None) -> tuple[bytes, bytes | None]:
    """A record of the journal."""
    key = encode_key(OffsetCommitKey(group=group, topic="t", partition=partition))
    if offset is None:
        return key, None
    return key, encode_value(
        OffsetCommitValue(offset=offset, metadata="m", commit_timestamp=1, leader_epoch=3)
    )


class Upstream:
    """The upstream's own coordinator."""

    is_open = True

    def __init__(self) -> None:
        self.offsets: Offsets = {}
        self.requests: list[Any] = []
        self.error = ErrorCode.NONE
        self.is_lost = False

    def connect(self, address: Endpoint, timeout_s: float) -> Deferred[Any]:
        return succeed(self)

    def _find(self, request: FindCoordinatorRequest) -> Deferred[Any]:
        if self.is_lost:
            return fail(LinkError("upstream broker 10.0.0.1:9092 closed the connection"))
        found = Coordinator(key=request.key, node_id=1, host="10.0.0.1", port=9092)
        return succeed(FindCoordinatorResponse(coordinators=(found,)))

    def ask(self, request: Any, **_: Any) -> Deferred[Any]:
        if isinstance(request, FindCoordinatorRequest):
            return self._find(request)
        self.requests.append(request)
        for topic in request.topics:
            for each in topic.partitions:
                where = (request.group_id, topic.name, each.partition_index)
                if isinstance(request, OffsetDeleteRequest):
                    self.offsets.pop(where, None)
                elif not self.error:
                    self.offsets[where] = each.committed_offset
        if isinstance(request, OffsetDeleteRequest):
            return succeed(OffsetDeleteResponse(error_code=ErrorCode.NONE))
        assert isinstance(request, OffsetCommitRequest)
        answered = tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=self.error)
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
        return succeed(OffsetCommitResponse(topics=answered))

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told(upstream: Upstream, clock: Clock) -> MirroredOffsets:
    return MirroredOffsets(clock, UpstreamCoordinators(upstream), Once(clock))


def test_the_last_offset_of_each_partition_is_told(
    upstream: Upstream, told: MirroredOffsets, clock: Clock
) -> None:
    told.note([commit("a", 0, 1), commit("a", 0, 2), commit("a", 1, 5), commit("b", 0, 7)])
    assert upstream.requests == []
    clock.advance(FLUSH_S)
    assert upstream.offsets == {("a", "t", 0): 2, ("a", "t", 1): 5, ("b", "t", 0): 7}
    first = upstream.requests[0]
    assert (first.generation_id_or_member_epoch, first.member_id) == (-1, ""), "from outside the group"
    (partition, _) = first.topics[0].partitions
    assert (partition.committed_leader_epoch, partition.committed_metadata) == (3, "m")
    clock.advance(FLUSH_S)
    assert len(upstream.requests) == 2, "once"


def test_deleted_offsets_are_deleted(upstream: Upstream, told: MirroredOffsets, clock: Clock) -> None:
    told.note([commit("a", 0, 1)])
    clock.advance(FLUSH_S)
    told.note([commit("a", 0, None)])
    clock.advance(FLUSH_S)
    assert upstream.offsets == {}


def test_other_records_are_left_out(upstream: Upstream, told: MirroredOffsets, clock: Clock) -> None:
    told.note([(encode_key(GroupMetadataKey(group="a")), None), (b"\x4b\x53", b"claim")])
    assert clock.getDelayedCalls() == []


def test_many_are_told_bit_by_bit(upstream: Upstream, told: MirroredOffsets, clock: Clock) -> None:
    told.note(commit("a", partition, 1) for partition in range(MOST_AT_ONCE + 1))
    clock.advance(FLUSH_S)
    assert len(upstream.offsets) == MOST_AT_ONCE
    clock.advance(FLUSH_S)
    assert len(upstream.offsets) == MOST_AT_ONCE + 1


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_was_not_heard_is_told_later_unless_there_is_something_newer(
    upstream: Upstream, told: MirroredOffsets, clock: Clock, is_lost: bool
) -> None:
    upstream.is_lost = is_lost
    upstream.error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    told.note([commit("a", 0, 1), commit("a", 1, 1)])
    clock.advance(FLUSH_S)
    told.note([commit("a", 0, 2)])
    upstream.is_lost, upstream.error = False, ErrorCode.NONE
    clock.pump([FLUSH_S] * 2)
    assert upstream.offsets == {("a", "t", 0): 2, ("a", "t", 1): 1}


def test_a_group_that_is_used_at_the_upstream_as_well(
    upstream: Upstream, told: MirroredOffsets, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.error = ErrorCode.UNKNOWN_MEMBER_ID
    for offset in range(3):
        told.note([commit("a", 0, offset)])
        clock.advance(FLUSH_S)
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [each.getMessage() for each in warnings] == [
        "group a has members here and at the upstream itself: both read the same partitions, and the upstream"
        " does not take the offsets that are committed here"
    ]


def test_at_the_end_all_is_told(upstream: Upstream, told: MirroredOffsets, clock: Clock) -> None:
    told.note([commit("a", 0, 1)])
    result(Deferred.fromCoroutine(told.stop()))
    assert upstream.offsets == {("a", "t", 0): 1}
    assert clock.getDelayedCalls() == []
