"""Sent offsets are looked at from time to time: which are sent again, and which stay."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed

from kshim.callers.once import Once
from kshim.upstream.shards.mirrored import FLUSH_S, MirroredOffsets, offset_of
from kshim.upstream.shards.renewal import (
    GROUPS_AT_ONCE,
    LOOK_S,
    PACE_S,
    RECENT_MS,
    RENEWALS_A_RETENTION,
    SOON_AGAIN_S,
    SOON_S,
    Renewal,
    is_due,
    is_foreign,
)
from kshim.upstream.upstream_groups import UpstreamGroups
from schemas.internal_topics.group_metadata_log import OffsetCommitValue
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.offset_commit import OffsetCommitRequest
from schemas.messages.offset_fetch import OffsetFetchRequest
from tests.api.harness import advance
from tests.upstream.front_world import TOPIC_ID, World, commit, join
from tests.upstream.kafka_groups import Group

RETENTION_MS = 7 * 24 * 3_600_000
RENEW_MS = RETENTION_MS // RENEWALS_A_RETENTION
NOW_MS = 10**12


def committed(age_ms: int) -> OffsetCommitValue:
    return OffsetCommitValue(offset=5, metadata="", commit_timestamp=NOW_MS - age_ms, leader_epoch=-1)


@pytest.mark.parametrize(
    ("there", "age_ms", "sent_ago_ms", "due", "foreign"),
    [
        (None, 0, None, True, False),
        (None, RETENTION_MS, 0, True, False),
        (5, 0, None, False, False),
        (5, RENEW_MS - 1, None, False, False),
        (5, RENEW_MS, None, True, False),
        (5, RENEW_MS, RENEW_MS - 1, False, False),
        (5, RENEW_MS, RENEW_MS, True, False),
        (4, RECENT_MS - 1, None, True, False),
        (4, RECENT_MS, None, False, True),
        (9, RETENTION_MS, None, False, True),
    ],
)
def test_what_is_due(
    there: int | None, age_ms: int, sent_ago_ms: int | None, *, due: bool, foreign: bool
) -> None:
    here = committed(age_ms)
    theirs = None if there is None else (there, -1, "")
    sent_ms = 0 if sent_ago_ms is None else NOW_MS - sent_ago_ms
    assert is_due(here, theirs, NOW_MS, sent_ms, RENEW_MS) is due
    assert is_foreign(here, theirs, NOW_MS) is foreign


@pytest.mark.parametrize(("there", "foreign"), [(4, False), (5, False), (6, True)])
def test_an_offset_further_than_the_one_that_was_taken_is_somebody_else_s(
    there: int, *, foreign: bool
) -> None:
    """A group that has moved back goes on there. One that is behind may be a late copy, which is repaired."""
    here, theirs = committed(age_ms=0), (there, -1, "")
    assert is_foreign(here, theirs, NOW_MS, was_taken=True) is foreign
    assert is_due(here, theirs, NOW_MS, 0, RENEW_MS, was_taken=True) is (there == 4)


class Looking:
    """A kshim whose groups are looked at."""

    def __init__(self, retention_ms: int = RETENTION_MS) -> None:
        self.world = World()
        self.world.upstream_topics["t"] = TOPIC_ID
        self.kafka = self.world.kafka
        clock: Any = self.world.here.clock
        upstream, once = UpstreamGroups(clock, self.kafka), Once(clock)
        self.mirrored = MirroredOffsets(clock, upstream, once)
        self.retention_ms = retention_ms
        self.renewal = Renewal(
            clock,
            lambda: int(clock.seconds() * 1000),
            self.world.groups,
            upstream,
            self.mirrored,
            self.retention,
            once,
        )

    def retention(self) -> Deferred[int]:
        return succeed(self.retention_ms)

    def commit(self, group_id: str = "g") -> None:
        commit(self.world, 9, group_id)

    def look(self, batches: int = 1) -> None:
        """Look at all groups once, and send all that is due."""
        self.renewal.soon()
        self.pass_s(SOON_S)
        for _ in range(batches):
            self.pass_s(PACE_S)
        self.pass_s(FLUSH_S)

    def pass_s(self, for_s: float) -> None:
        advance(self.world.here, for_s * 1000)
        for _ in range(60):
            advance(self.world.here)

    def told(self) -> int:
        """The number of commits that were sent to the upstream since the last call."""
        found = len(self.kafka.asked(OffsetCommitRequest))
        self.kafka.requests.clear()
        return found

    def offset(self, group_id: str = "g") -> Any:
        return self.kafka.groups.get(group_id, Group()).offsets.get(("t", 0))


def test_what_the_leader_before_has_not_told_is_told() -> None:
    it = Looking()
    it.commit()
    it.look()
    assert it.offset() == (5, -1, "")
    assert it.told() == 1
    it.look()
    assert it.told() == 0, "it is there"


def test_what_the_leader_before_tells_late_is_repaired_soon() -> None:
    """Its request may have been on its way when it was cut off."""
    it = Looking()
    it.commit()
    it.look()
    it.pass_s(SOON_AGAIN_S)
    it.kafka.groups["g"].offsets["t", 0] = (4, -1, "")
    it.pass_s(SOON_AGAIN_S)
    it.pass_s(FLUSH_S)
    assert it.offset() == (5, -1, "")


def test_an_offset_is_told_again_long_before_the_upstream_forgets_it() -> None:
    it = Looking()
    it.commit()
    it.look()
    it.told()
    told_at_s = []
    for _ in range(int(RETENTION_MS / 1000 / LOOK_S) + 1):
        it.pass_s(LOOK_S)
        if it.told():
            told_at_s.append(it.world.here.clock.seconds())
    assert len(told_at_s) == RENEWALS_A_RETENTION - 1
    gaps_s = [after - before for before, after in pairwise(told_at_s)]
    assert max(gaps_s) < RETENTION_MS / 1000 / 3


def test_what_the_upstream_has_forgotten_is_told_again() -> None:
    it = Looking()
    it.commit()
    it.look()
    it.pass_s(RECENT_MS / 1000)
    it.kafka.groups.clear()
    it.look()
    assert it.offset() == (5, -1, "")


def test_what_was_committed_there_later_stays(caplog: pytest.LogCaptureFixture) -> None:
    """A group that has moved back must not go back."""
    it = Looking()
    it.commit()
    it.look()
    it.kafka.groups["g"].offsets["t", 0] = (9, -1, "")
    for _ in range(3):
        it.pass_s(RECENT_MS / 1000)
    assert it.offset() == (9, -1, "")
    said = "group g: a client has committed offset 9 of t-0 at the upstream; kshim has 5"
    assert said in caplog.text


def test_many_groups_are_looked_at_a_few_at_a_time() -> None:
    it = Looking()
    names = [f"g{n}" for n in range(2 * GROUPS_AT_ONCE + 1)]
    for name in names:
        it.commit(name)
    it.kafka.groups = {name: Group(offsets={("t", 0): offset_of(committed(0))}) for name in names}
    it.renewal.soon()
    it.pass_s(SOON_S)
    asked = {each.group_id for request in it.kafka.asked(OffsetFetchRequest) for each in request.groups}
    assert len(asked) == GROUPS_AT_ONCE
    assert len(it.kafka.asked(OffsetFetchRequest)) <= 2, "one for each coordinator"
    it.pass_s(PACE_S)
    it.pass_s(PACE_S)
    asked = {each.group_id for request in it.kafka.asked(OffsetFetchRequest) for each in request.groups}
    assert asked == set(names)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_is_used_at_both_sides_is_found(caplog: pytest.LogCaptureFixture, protocol: str) -> None:
    it = Looking()
    it.commit()
    join(it.world, "g")
    it.kafka.groups = {"g": Group("Stable", protocol)}
    it.look()
    assert it.mirrored.in_use == {"g"}
    assert "group g is used here and has members at the upstream itself" in caplog.text
    assert [each.groups for each in it.kafka.asked(DescribeGroupsRequest)] == [("g",)]
    it.kafka.groups["g"].state = "Empty"
    it.look()
    assert it.mirrored.in_use == set()


def test_an_upstream_that_is_gone_is_asked_again_later() -> None:
    it = Looking()
    it.commit()
    it.kafka.is_down = True
    it.look()
    it.kafka.is_down = False
    it.pass_s(LOOK_S)
    it.pass_s(FLUSH_S)
    assert it.offset() == (5, -1, "")


def test_it_stops() -> None:
    it = Looking()
    it.renewal.soon()
    it.renewal.stop()
    it.renewal.soon()
    clock: Any = it.world.here.clock
    assert not [call for call in clock.getDelayedCalls() if "_look" in str(call.func)]
