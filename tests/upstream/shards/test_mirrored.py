"""Committed offsets that are sent to the upstream."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.callers.once import Once
from kshim.upstream.shards.mirrored import (
    FLUSH_S,
    MOST_AT_ONCE,
    STOP_S,
    MirroredOffsets,
    offset_of,
)
from kshim.upstream.upstream_groups import UpstreamGroups
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from tests.api.harness import result
from tests.upstream.kafka_groups import Group, KafkaGroups

TOPIC_ID = UUID(int=77)


def commit(group: str, partition: int, offset: int | None) -> tuple[bytes, bytes | None]:
    """A record of the journal."""
    key = encode_key(OffsetCommitKey(group=group, topic="t", partition=partition))
    if offset is None:
        return key, None
    return key, encode_value(
        OffsetCommitValue(offset=offset, metadata="m", commit_timestamp=1, leader_epoch=3)
    )


def value(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(offset=offset, metadata="m", commit_timestamp=1, leader_epoch=3)


@pytest.fixture
def upstream() -> KafkaGroups:
    return KafkaGroups()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told(upstream: KafkaGroups, clock: Clock) -> MirroredOffsets:
    return MirroredOffsets(clock, UpstreamGroups(clock, upstream), Once(clock))


def offsets(upstream: KafkaGroups) -> dict[tuple[str, str, int], int]:
    return {
        (group_id, *where): offset
        for group_id, group in upstream.groups.items()
        for where, (offset, *_) in group.offsets.items()
    }


def test_the_last_offset_of_each_partition_is_told(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock
) -> None:
    told.note(0, [commit("a", 0, 1), commit("a", 0, 2), commit("a", 1, 5), commit("b", 0, 7)])
    assert upstream.requests == []
    clock.advance(FLUSH_S)
    assert offsets(upstream) == {("a", "t", 0): 2, ("a", "t", 1): 5, ("b", "t", 0): 7}
    first = upstream.requests[0]
    assert (first.generation_id_or_member_epoch, first.member_id) == (-1, ""), "from outside the group"
    (partition, _) = first.topics[0].partitions
    assert (partition.committed_leader_epoch, partition.committed_metadata) == (3, "m")
    clock.advance(FLUSH_S)
    assert len(upstream.requests) == 2, "once"


def test_what_was_deleted_is_not_told(upstream: KafkaGroups, told: MirroredOffsets, clock: Clock) -> None:
    """Whoever has deleted it deletes it at the upstream, too."""
    told.note(0, [commit("a", 0, 1), commit("a", 1, 1)])
    told.note(0, [commit("a", 0, None)])
    clock.advance(FLUSH_S)
    assert offsets(upstream) == {("a", "t", 1): 1}


def expire(told: MirroredOffsets, clock: Clock, **offsets: int) -> None:
    told.expired("a", {("t", int(name[1:])): value(offset) for name, offset in offsets.items()})
    clock.pump([FLUSH_S, *[0] * 20])


def test_what_has_expired_is_deleted_there(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock
) -> None:
    upstream.groups["a"] = Group(offsets={("t", n): offset_of(value(5)) for n in range(3)})
    expire(told, clock, p0=5, p1=5)
    assert offsets(upstream) == {("a", "t", 2): 5}
    expire(told, clock, p2=5)
    assert upstream.groups == {}, "no other offsets are left"


def test_a_group_that_has_moved_back_keeps_what_it_has_committed_there(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock
) -> None:
    upstream.groups["a"] = Group(offsets={("t", 0): offset_of(value(7)), ("t", 1): offset_of(value(5))})
    expire(told, clock, p0=5, p1=5)
    assert offsets(upstream) == {("a", "t", 0): 7}


@pytest.mark.parametrize("is_down", [True, False])
def test_what_cannot_be_deleted_is_left_to_the_upstream(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock, *, is_down: bool
) -> None:
    upstream.groups["a"] = Group(offsets={("t", 0): offset_of(value(5))})
    upstream.is_down, upstream.error = is_down, ErrorCode.GROUP_AUTHORIZATION_FAILED
    expire(told, clock, p0=5)
    assert offsets(upstream) == {("a", "t", 0): 5}
    assert clock.getDelayedCalls() == []


def test_an_offset_that_is_told_again_is_no_newer_than_what_is_to_be_told(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock
) -> None:
    told.note(0, [commit("a", 0, 9)])
    told.send_again("a", ("t", 0), value(5))
    told.send_again("a", ("t", 1), value(5))
    clock.advance(FLUSH_S)
    assert offsets(upstream) == {("a", "t", 0): 9, ("a", "t", 1): 5}


def test_other_records_are_left_out(upstream: KafkaGroups, told: MirroredOffsets, clock: Clock) -> None:
    told.note(0, [(encode_key(GroupMetadataKey(group="a")), None), (b"\x4b\x53", b"claim")])
    assert clock.getDelayedCalls() == []


def test_many_are_told_bit_by_bit(upstream: KafkaGroups, told: MirroredOffsets, clock: Clock) -> None:
    told.note(0, (commit("a", partition, 1) for partition in range(MOST_AT_ONCE + 1)))
    clock.advance(FLUSH_S)
    assert len(offsets(upstream)) == MOST_AT_ONCE
    clock.advance(FLUSH_S)
    assert len(offsets(upstream)) == MOST_AT_ONCE + 1


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_was_not_heard_is_told_later_unless_there_is_something_newer(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock, is_lost: bool
) -> None:
    upstream.is_down = is_lost
    upstream.error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    told.note(0, [commit("a", 0, 1), commit("a", 1, 1)])
    clock.advance(FLUSH_S)
    told.note(0, [commit("a", 0, 2)])
    upstream.is_down, upstream.error = False, ErrorCode.NONE
    clock.pump([FLUSH_S] * 2)
    assert offsets(upstream) == {("a", "t", 0): 2, ("a", "t", 1): 1}


def test_a_group_that_is_used_at_the_upstream_as_well(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.error = ErrorCode.UNKNOWN_MEMBER_ID
    for offset in range(3):
        told.note(0, [commit("a", 0, offset)])
        clock.advance(FLUSH_S)
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [each.getMessage() for each in warnings] == [
        "group a is used here and has members at the upstream itself: both read the same partitions, and the "
        "upstream does not take the offsets that are committed here; give all members the same address"
    ]
    assert told.in_use == {"a"}
    told.note_use("a", is_used=False)
    assert told.in_use == set()


@pytest.mark.parametrize("is_found", [True, False])
def test_what_acls_refuse_is_told_once_and_not_tried_again(
    upstream: KafkaGroups,
    told: MirroredOffsets,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    is_found: bool,
) -> None:
    setattr(upstream, "error" if is_found else "finding", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    for offset in range(3):
        told.note(0, [commit("a", 0, offset)])
        clock.advance(FLUSH_S)
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [each.getMessage() for each in warnings] == [
        "the upstream does not take the offsets of group a: GROUP_AUTHORIZATION_FAILED"
    ]
    assert not clock.getDelayedCalls()


def test_at_the_end_all_is_told(upstream: KafkaGroups, told: MirroredOffsets, clock: Clock) -> None:
    told.note(0, [commit("a", 0, 1)])
    result(Deferred.fromCoroutine(told.stop()))
    assert offsets(upstream) == {("a", "t", 0): 1}
    assert clock.getDelayedCalls() == []


class Leadership:
    """The upstream's answers to whether the shards are led."""

    def __init__(self, told: MirroredOffsets) -> None:
        self.asked: list[tuple[int, Deferred[bool]]] = []
        told.shard_for = {"a": 1, "b": 2}.__getitem__
        told.proven = self._prove

    def _prove(self, shard: int) -> Deferred[bool]:
        answer: Deferred[bool] = Deferred()
        self.asked.append((shard, answer))
        return answer

    def answer(self, *, is_led: bool) -> None:
        self.asked.pop(0)[1].callback(is_led)


def test_nothing_is_told_before_it_is_proven_that_the_shard_is_led(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock
) -> None:
    leadership = Leadership(told)
    told.note(1, [commit("a", 0, 100)])
    clock.advance(FLUSH_S)
    assert [shard for shard, _ in leadership.asked] == [1]
    assert upstream.requests == []
    leadership.answer(is_led=True)
    assert offsets(upstream) == {("a", "t", 0): 100}


def test_what_cannot_be_proven_yet_is_told_later(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock
) -> None:
    leadership = Leadership(told)
    told.note(1, [commit("a", 0, 100)])
    clock.advance(FLUSH_S)
    leadership.answer(is_led=False)
    assert upstream.requests == []
    clock.advance(FLUSH_S)
    leadership.answer(is_led=True)
    assert offsets(upstream) == {("a", "t", 0): 100}


@pytest.mark.parametrize("is_led_again", [False, True])
def test_a_shard_that_is_lost_takes_its_offsets_along(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock, *, is_led_again: bool
) -> None:
    """Also if it is led again at once: another kshim may have led it in between."""
    leadership = Leadership(told)
    told.note(1, [commit("a", 0, 100)])
    told.note(2, [commit("b", 0, 7)])
    clock.advance(FLUSH_S)
    told.lost(1)
    if is_led_again:
        told.note(1, [commit("a", 1, 3)])
    leadership.answer(is_led=is_led_again)
    leadership.answer(is_led=True)
    assert offsets(upstream) == {("b", "t", 0): 7}
    clock.advance(FLUSH_S)
    if is_led_again:
        leadership.answer(is_led=True)
        assert offsets(upstream) == {("a", "t", 1): 3, ("b", "t", 0): 7}
    assert not leadership.asked
    assert not clock.getDelayedCalls()


def test_what_is_deleted_while_leadership_is_proven_is_not_told(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock
) -> None:
    leadership = Leadership(told)
    told.note(1, [commit("a", 0, 100), commit("a", 1, 100)])
    clock.advance(FLUSH_S)
    told.note(1, [commit("a", 0, None)])
    leadership.answer(is_led=True)
    assert offsets(upstream) == {("a", "t", 1): 100}


def test_whoever_does_not_lead_deletes_nothing_that_has_expired(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock
) -> None:
    leadership = Leadership(told)
    upstream.groups["a"] = Group(offsets={("t", 0): offset_of(value(5))})
    expire(told, clock, p0=5)
    leadership.answer(is_led=False)
    assert offsets(upstream) == {("a", "t", 0): 5}


def test_the_end_does_not_wait_for_ever(upstream: KafkaGroups, told: MirroredOffsets, clock: Clock) -> None:
    Leadership(told)
    told.note(1, [commit("a", 0, 1)])
    stopped = Deferred.fromCoroutine(told.stop())
    assert not stopped.called
    clock.advance(STOP_S)
    assert stopped.called
    assert upstream.requests == []


def with_id(offset: int, topic_id: UUID) -> tuple[bytes, bytes]:
    """A record of the journal, with the id of its topic."""
    committed = replace(value(offset), topic_id=topic_id)
    return encode_key(OffsetCommitKey(group="a", topic="t", partition=0)), encode_value(committed)


@pytest.mark.parametrize(("newest", "is_by_id"), [(9, False), (10, True)])
def test_offsets_are_told_by_topic_id_if_the_upstream_takes_that(
    clock: Clock, *, newest: int, is_by_id: bool
) -> None:
    upstream = KafkaGroups(OFFSET_COMMIT=newest)
    told = MirroredOffsets(clock, UpstreamGroups(clock, upstream), Once(clock))
    told.note(0, [with_id(5, TOPIC_ID)])
    clock.advance(FLUSH_S)
    (request,) = upstream.requests
    assert (request.topics[0].name, request.topics[0].topic_id) == ("t", TOPIC_ID)
    assert upstream.versions_asked == [10 if is_by_id else 9]


def test_an_offset_without_an_id_is_told_by_name(clock: Clock) -> None:
    upstream = KafkaGroups(OFFSET_COMMIT=10)
    told = MirroredOffsets(clock, UpstreamGroups(clock, upstream), Once(clock))
    told.note(0, [with_id(5, TOPIC_ID), commit("a", 1, 3)])
    clock.advance(FLUSH_S)
    assert upstream.versions_asked == [9]


def test_an_offset_of_a_topic_that_was_made_again_is_not_told(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock
) -> None:
    told.topic_id_of = lambda _: UUID(int=78)
    told.note(0, [with_id(5, TOPIC_ID)])
    clock.advance(FLUSH_S)
    assert upstream.requests == []
    assert not clock.getDelayedCalls()


def test_a_topic_that_is_gone_at_the_upstream_is_no_reason_for_a_line(
    upstream: KafkaGroups, told: MirroredOffsets, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.error = ErrorCode.UNKNOWN_TOPIC_ID
    told.note(0, [with_id(5, TOPIC_ID)])
    clock.advance(FLUSH_S)
    assert not clock.getDelayedCalls()
    assert caplog.text == ""
