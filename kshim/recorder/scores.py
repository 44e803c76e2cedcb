"""Scores from all rebalances of a group: does it flap, which client is slow, which dies again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypedDict

from kshim.coordination.groups.rebalance_record import NEVER_MS, Part, Rebalance
from kshim.coordination.groups.trigger import Gone
from kshim.recorder.story import seconds

WINDOW_MS = 600_000
"""Flapping is looked for in the last ten minutes."""
RESTLESS = 0.1
"""A group flaps if it rebalances for a larger share of the time."""
SLOW_MS = 1_000
"""A client is called slow if it took longer than this in all."""
DIES_AGAIN = 2
"""A client is called a zombie if so many of its sessions have expired: it starts again, or freezes, and dies
again.
"""


class Scores(TypedDict):
    """A client is named by its instance id, or by its client id and host."""

    rebalances: int
    """The number of rebalances in the last ten minutes."""
    rebalancing: float
    """The share of that time that they took, from 0 to 1."""
    slowest: str | None
    """The client that took longest, in all, to join or to give up partitions after it had heard of it."""
    slowest_ms: int
    zombies: Mapping[str, int]
    """The number of sessions that have expired, by client."""


def scores(rebalances: Sequence[Rebalance], now_ms: int) -> Scores:
    since_ms = now_ms - WINDOW_MS
    late = [each for each in rebalances if each.ended_ms > since_ms]
    took_ms = sum(each.ended_ms - max(each.began_ms, since_ms) for each in late)
    waited_ms: Counter[str] = Counter()
    expired: Counter[str] = Counter()
    for rebalance in rebalances:
        joined = [part for part in rebalance.parts.values() if part.joined_ms != NEVER_MS]
        if len(joined) > 1 or (joined and rebalance.is_of_consumers):
            last = max(joined, key=_took_ms)
            waited_ms[_name(last)] += _took_ms(last)
        expired.update(_name(part) for part in rebalance.parts.values() if part.gone is Gone.EXPIRED)
    slowest = waited_ms.most_common(1)
    return {
        "rebalances": len(late),
        "rebalancing": round(took_ms / WINDOW_MS, 4),
        "slowest": slowest[0][0] if slowest and slowest[0][1] else None,
        "slowest_ms": slowest[0][1] if slowest else 0,
        "zombies": {name: times for name, times in expired.items() if times >= DIES_AGAIN},
    }


def remarks(scores: Scores) -> list[str]:
    """Say in words which of the scores deserve a look."""
    found = []
    if scores["rebalancing"] > RESTLESS:
        found.append(f"flaps: it rebalanced {scores['rebalancing']:.0%} of the last 10 min")
    if scores["slowest_ms"] > SLOW_MS:
        found.append(f"slowest: {scores['slowest']}, {seconds(scores['slowest_ms'])} in all")
    return found + [f"{name} died {times} times" for name, times in scores["zombies"].items()]


def _took_ms(part: Part) -> int:
    """The time that a member took after it had heard of the rebalance: a heartbeat that was not due is not
    its fault.
    """
    return 0 if part.notified_ms == NEVER_MS else max(part.joined_ms - part.notified_ms, 0)


def _name(part: Part) -> str:
    who = part.who
    return who.group_instance_id or f"{who.client_id} at {who.client_host.removeprefix('/')}"
