"""The invariants of every group after every step, whatever was sent."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.offered import split_names
from kshim.coordination.groups.pending_ids import timer_of
from kshim.coordination.groups.states import State
from kshim.coordination.groups.timers import ShardTimer, TimerKey, TimerKind

if TYPE_CHECKING:
    from tests.coordination.groups.history import History


def check(history: History) -> None:
    for group in history.groups().values():
        counts_are_true(group)
        state_fits_members(group)
        every_wait_ends(history, group)
    parked_requests_are_held_once(history)
    every_timer_has_its_use(history)
    every_pending_id_is_counted(history)


def counts_are_true(group: ClassicGroup) -> None:
    """Each count that a group maintains equals a recount."""
    members = group.members
    assert all(member.member_id == member_id for member_id, member in members.items())
    assert group.awaiting_join == sum(member.parked_join is not None for member in members.values())
    offered = Counter(member.protocols.names for member in members.values())
    assert {names: count for names, (_, count) in group.offered._lists.items()} == offered
    assert group.offered._count == sum(len(split_names(names)) for names in offered)
    lists = [set(split_names(names)) for names in offered]
    assert set(split_names(group.offered.common())) == (set.intersection(*lists) if lists else set())
    assert group.static_members == {
        member.group_instance_id: member_id for member_id, member in members.items() if member.is_static
    }
    assert group.pending_join.isdisjoint(members)
    assert group.pending_sync <= members.keys()
    assert (group.leader in members) if members else (group.leader is None)


def state_fits_members(group: ClassicGroup) -> None:
    if group.state is State.DEAD:
        return
    members = group.members.values()
    if group.state is State.EMPTY:
        assert not members
        assert group.protocol_name is None
    if group.state in (State.COMPLETING_REBALANCE, State.STABLE):
        assert members
        assert (group.protocol_name or "").encode() in split_names(group.offered.common())
        assert not group.awaiting_join
    if group.state is not State.COMPLETING_REBALANCE:
        assert all(member.parked_sync is None for member in members)
    if group.state not in (State.STABLE, State.PREPARING_REBALANCE):
        assert all(member.parked_heartbeat is None for member in members)
    if group.state is not State.PREPARING_REBALANCE:
        assert group.initial_delay is None
    rebalances = group.state in (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE)
    assert (group.rebalance is not None) == bool(rebalances or group.pending_sync)
    if members:
        assert split_names(group.offered.common())


def every_wait_ends(history: History, group: ClassicGroup) -> None:
    """Nobody waits without a deadline, and nobody stays in a group without one."""

    def is_armed(kind: TimerKind, member_id: str = "") -> bool:
        return history.deadline_ms(TimerKey(kind, group.group_id, member_id)) is not None

    if group.state is State.DEAD:
        return
    assert is_armed(TimerKind.JOIN) == (group.state is State.PREPARING_REBALANCE)
    assert is_armed(TimerKind.SYNC) == bool(group.pending_sync)
    if group.state is State.COMPLETING_REBALANCE:
        assert group.pending_sync
    for member in group.members.values():
        assert is_armed(TimerKind.MEMBER, member.member_id) or _is_covered(group, member)
        assert is_armed(TimerKind.HEARTBEAT, member.member_id) == (member.parked_heartbeat is not None)
    for member_id in group.pending_join:
        assert is_armed(TimerKind.MEMBER, member_id)


def _is_covered(group: ClassicGroup, member: Member) -> bool:
    """A member without a session timer waits for the end of a phase, which gives it a new one."""
    if member.parked_sync is not None:
        return group.state is State.COMPLETING_REBALANCE
    return member.parked_join is not None and group.state is State.PREPARING_REBALANCE


def parked_requests_are_held_once(history: History) -> None:
    """A request without an answer is held by exactly one member, and an answered one by none."""
    held = [
        token
        for group in history.groups().values()
        for member in group.members.values()
        for token in (member.parked_join, member.parked_sync, member.parked_heartbeat)
        if token is not None
    ]
    assert len(held) == len(set(held))
    assert history.answers.keys().isdisjoint(held)


def every_timer_has_its_use(history: History) -> None:
    """No timer outlives its purpose, and each shard will look for what has expired."""
    groups, shards = history.groups(), history.coordinator._shards
    timers = history.coordinator._timers._deadlines_ms
    assert {timer.shard for timer in timers if isinstance(timer, ShardTimer)} == {
        number for number, shard in shards.items() if not shard.is_loading
    }
    for timer in timers:
        if isinstance(timer, ShardTimer):
            continue
        assert timer.group_id in groups
        group = groups[timer.group_id]
        assert (
            timer.kind is not TimerKind.MEMBER or timer.member_id in group.members.keys() | group.pending_join
        )


def every_pending_id_is_counted(history: History) -> None:
    """Each once, unless it is about to be given up."""
    counted = {(timer.group_id, timer.member_id) for timer in history.coordinator._pending_ids._timers}
    pending = {(group.group_id, each) for group in history.groups().values() for each in group.pending_join}
    assert counted <= pending
    due = [timer for group_id, each in pending - counted for timer in [timer_of(group_id, each)]]
    assert all((history.deadline_ms(timer) or 0) <= history.now_ms for timer in due)
