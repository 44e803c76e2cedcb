"""The timers of groups when people hold time or move it ahead: which go by that time, and which do not."""

from __future__ import annotations

from collections.abc import Collection

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.rebalance import SHORTEST_DELAY_MS
from kshim.coordination.groups.timers import AnyTimer, TimerKey, TimerKind, Timers

_ANSWERS = frozenset((TimerKind.HEARTBEAT, TimerKind.WAIT, TimerKind.REGEX, TimerKind.TARGET, TimerKind.LOOK))
"""Timers of what clients get an answer from."""


def only_paces(key: AnyTimer, left_ms: int) -> bool:
    """True if this timer makes clients wait for a moment only; they could not wait until held time goes on.

    Such timers are those of parked heartbeats and of what they wait for, and the one for SHORTEST_DELAY_MS in
    which members may join an empty group together.
    """
    if not isinstance(key, TimerKey):
        return False
    return key.kind in _ANSWERS or (key.kind is TimerKind.JOIN and left_ms <= SHORTEST_DELAY_MS)


def keep_members(
    timers: Timers, group: ClassicGroup, connected: Collection[str], now_ms: int, by_ms: int
) -> None:
    """Prepare a group for a move of time by `by_ms`: keep the sessions of the connected members as if they
    had sent heartbeats all the time, and extend the join and sync phases that wait for them.

    The clocks of their clients do not move. So a parked heartbeat stays parked, and its member hears at once
    of a rebalance that begins after the move. connected: ids of the members whose clients are connected.
    """
    members = [group.members[member_id] for member_id in connected if member_id in group.members]
    for member in members:
        if member.heartbeat_at_ms is not None:
            member.heartbeat_at_ms += by_ms
        timers.postpone(member.heartbeat_timer, by_ms)
        if member.parked_join is not None:
            timers.postpone(member.timer, by_ms)
        elif timers.deadline_ms(member.timer) is not None:
            timers.arm(member.timer, now_ms + by_ms + member.session_timeout_ms)
    pending = group.pending_join.intersection(connected)
    for member_id in pending:
        timers.postpone(TimerKey(TimerKind.MEMBER, group.group_id, member_id), by_ms)
    if pending or any(member.parked_join is None for member in members):
        timers.postpone(TimerKey(TimerKind.JOIN, group.group_id), by_ms)
    if not group.pending_sync.isdisjoint(connected):
        timers.postpone(TimerKey(TimerKind.SYNC, group.group_id), by_ms)
