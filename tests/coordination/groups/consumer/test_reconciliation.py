"""One member on its way to its target, step by step; cases 64 to 82."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from kshim.coordination.groups.consumer.member import Member, MemberState
from kshim.coordination.groups.consumer.membership import check_state
from kshim.coordination.groups.consumer.partition_epochs import FREE
from kshim.coordination.groups.consumer.reconciliation import Step, reconcile
from kshim.coordination.groups.consumer.refused import Refused
from schemas.error_code import ErrorCode
from tests.coordination.groups.consumer.world import BAR, FOO, held, target

STABLE, UNKNOWN = MemberState.STABLE, MemberState.UNKNOWN
UNREVOKED, UNRELEASED = MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS
Owned = Mapping[UUID, list[int]] | None


def member(state: MemberState = STABLE, epoch: int = 10, **fields: Any) -> Member:
    return Member("m", epoch=epoch, previous_epoch=epoch, state=state, **fields)


def step(
    of: Member,
    wanted: Mapping[UUID, frozenset[int]],
    owned: Owned = None,
    epoch: int = 11,
    taken: tuple[tuple[UUID, int], ...] = (),
    subscribed: frozenset[UUID] = frozenset((FOO, BAR)),
    is_new: bool = False,
) -> Member:
    def epoch_of(topic_id: UUID, partition: int) -> int:
        mine = partition in of.assigned.get(topic_id, ()) or partition in of.revoking.get(topic_id, ())
        return 10 if mine or (topic_id, partition) in taken else FREE

    return reconcile(of, Step(epoch, wanted, subscribed, epoch_of, is_new, owned))


def test_64_stable_to_stable() -> None:
    moved = step(member(assigned=held(10, foo=(1, 2), bar=(3,))), target(foo=(1, 2), bar=(3,)))
    assert moved == Member("m", 11, 10, STABLE, assigned=held(10, foo=(1, 2), bar=(3,)))


def test_64_nothing_changes_at_the_targets_epoch() -> None:
    there = member(epoch=11, assigned=held(10, foo=(1,)))
    assert step(there, target(foo=(1, 2))) is there


def test_65_free_partitions_are_added_at_once() -> None:
    moved = step(member(assigned=held(10, foo=(1,))), target(foo=(1, 4), bar=(3,)))
    assert moved == Member("m", 11, 10, STABLE, assigned={FOO: {1: 10, 4: 11}, BAR: {3: 11}})


@pytest.mark.parametrize("owned", [None, {FOO: [1]}, {FOO: [1, 2], BAR: [3]}])
def test_66_partitions_are_to_be_given_up(owned: Owned) -> None:
    moved = step(member(assigned=held(10, foo=(1, 2), bar=(3,))), target(foo=(2, 4), bar=(3,)), owned)
    assert moved == Member(
        "m", 10, 10, UNREVOKED, assigned=held(10, foo=(2,), bar=(3,)), revoking=held(10, foo=(1,))
    )


def test_67_others_hold_what_it_is_to_have() -> None:
    moved = step(member(assigned=held(10, foo=(1,))), target(foo=(1, 4)), taken=((FOO, 4),))
    assert moved == Member("m", 11, 10, UNRELEASED, assigned=held(10, foo=(1,)))


def test_68_what_it_does_not_own_need_not_be_given_up() -> None:
    moved = step(member(assigned=held(10, foo=(1, 2))), target(foo=(1, 4)), {}, taken=((FOO, 4),))
    assert moved == Member("m", 11, 10, UNRELEASED, assigned=held(10, foo=(1,)))


WAITING = member(UNREVOKED, assigned=held(10, foo=(2, 3)), revoking=held(10, foo=(1,), bar=(4,)))


def test_69_given_up() -> None:
    moved = step(WAITING, target(foo=(2, 3)), {FOO: [2, 3]})
    assert moved == Member("m", 11, 10, STABLE, assigned=held(10, foo=(2, 3)))


@pytest.mark.parametrize("owned", [None, {FOO: [1]}, {BAR: [4]}, {FOO: [1, 2, 3], BAR: [4]}])
def test_70_not_given_up_yet(owned: Owned) -> None:
    assert step(WAITING, target(foo=(2, 3)), owned, epoch=12) is WAITING


def test_71_given_up_but_the_newest_target_takes_more() -> None:
    moved = step(WAITING, target(foo=(3,)), {FOO: [2, 3]}, epoch=12)
    assert moved == Member("m", 10, 10, UNREVOKED, assigned=held(10, foo=(3,)), revoking=held(10, foo=(2,)))


def test_72_given_up_and_others_hold_what_it_is_to_have() -> None:
    moved = step(WAITING, target(foo=(2, 3), bar=(5,)), {FOO: [2]}, taken=((BAR, 5),))
    assert moved == Member("m", 11, 10, UNRELEASED, assigned=held(10, foo=(2, 3)))


def test_73_a_partition_that_it_gave_up_comes_back() -> None:
    moved = step(WAITING, target(foo=(2, 3), bar=(4,)), {FOO: [2, 3]}, epoch=12)
    assert moved == Member("m", 12, 10, STABLE, assigned={FOO: {2: 10, 3: 10}, BAR: {4: 12}})


def test_74_released() -> None:
    before = member(UNRELEASED, epoch=11, assigned=held(10, foo=(2,)))
    moved = step(before, target(foo=(2, 3)))
    assert moved == Member("m", 11, 11, STABLE, assigned={FOO: {2: 10, 3: 11}})


def test_75_not_released_yet() -> None:
    before = member(UNRELEASED, epoch=11, assigned=held(10, foo=(2,)))
    assert step(before, target(foo=(2, 3)), taken=((FOO, 3),)) == before
    moved = step(before, target(foo=(2, 3)), epoch=12, taken=((FOO, 3),))
    assert moved == Member("m", 12, 11, UNRELEASED, assigned=held(10, foo=(2,)))


def test_76_the_target_shrinks_while_it_waits() -> None:
    before = member(UNRELEASED, epoch=11, assigned=held(10, foo=(2, 3)))
    moved = step(before, target(foo=(2,)), {FOO: [2, 3]}, epoch=12)
    assert moved == Member("m", 11, 11, UNREVOKED, assigned=held(10, foo=(2,)), revoking=held(10, foo=(3,)))


@pytest.mark.parametrize("owned", [None, {FOO: [2]}])
def test_77_a_member_in_an_unknown_state_must_own_nothing(owned: Owned) -> None:
    with pytest.raises(Refused) as refused:
        check_state(member(UNKNOWN), owned)
    assert refused.value.error is ErrorCode.FENCED_MEMBER_EPOCH
    assert refused.value.message == (
        "The consumer group member is in a unknown state. The member must abandon all its partitions and "
        "rejoin."
    )


def test_77_then_it_begins_anew() -> None:
    before = member(UNKNOWN, assigned=held(10, foo=(1, 2)))
    check_state(before, {})
    assert step(before, target(foo=(2, 3)), {}) == Member("m", 11, 10, STABLE, assigned={FOO: {2: 10, 3: 11}})


class TestTopicsThatItDoesNotSubscribeToAnyMore:
    before = member(assigned=held(10, foo=(1, 2), bar=(3,)))
    stale = target(foo=(1, 2), bar=(3,))
    only_bar = frozenset((BAR,))

    def test_78_they_go_although_the_target_has_them(self) -> None:
        moved = step(self.before, self.stale, {BAR: [3]}, subscribed=self.only_bar, is_new=True)
        assert moved == Member("m", 11, 10, STABLE, assigned=held(10, bar=(3,)))

    def test_78_at_the_targets_epoch_only_with_a_new_subscription(self) -> None:
        there = member(epoch=11, assigned=self.before.assigned)
        assert step(there, self.stale, {BAR: [3]}, subscribed=self.only_bar) is there
        moved = step(there, self.stale, {BAR: [3]}, subscribed=self.only_bar, is_new=True)
        assert moved == Member("m", 11, 11, STABLE, assigned=held(10, bar=(3,)))

    def test_79_they_are_given_up_first(self) -> None:
        revoking = held(10, foo=(1, 2))
        for epoch in (10, 11):
            moved = step(self.before, self.stale, epoch=epoch, subscribed=self.only_bar, is_new=True)
            assert moved == Member("m", 10, 10, UNREVOKED, assigned=held(10, bar=(3,)), revoking=revoking)

    def test_80_more_is_given_up_while_it_gives_up_some(self) -> None:
        before = member(UNREVOKED, assigned=held(10, foo=(2,), bar=(3,)), revoking=held(10, foo=(1,)))
        owned = {FOO: [1, 2], BAR: [3]}
        assert step(before, self.stale, owned, subscribed=self.only_bar) is before
        moved = step(before, self.stale, owned, subscribed=self.only_bar, is_new=True)
        assert moved == Member(
            "m", 10, 10, UNREVOKED, assigned=held(10, bar=(3,)), revoking=held(10, foo=(1, 2))
        )

    def test_81_without_any_topic_all_goes(self) -> None:
        moved = step(self.before, self.stale, subscribed=frozenset(), is_new=True)
        assert moved.revoking == self.before.assigned
        assert moved.assigned == {}
        nothing = Member("m", 10, 9, STABLE)
        moved = step(nothing, {}, epoch=10, subscribed=frozenset(), is_new=True)
        assert moved == Member("m", 10, 10, STABLE)
