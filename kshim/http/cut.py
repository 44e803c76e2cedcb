"""Cuts what a page shows of a group: a member may have 100,000 partitions, a group 30,000 members."""

from __future__ import annotations

from collections.abc import Sequence

from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.recorder.ownership import Ownership
from kshim.recorder.shown import Assignment, ShownPart, ShownRebalance, shown

MOST_MEMBERS = 200
"""Members shown of a group, or of one rebalance."""
MOST_PARTITIONS = 200
"""Partitions shown of one assignment. How many it has is shown, too."""
MOST_SENTENCES = 50


def latest_rebalances(kept: Sequence[Rebalance], most: int) -> list[ShownRebalance]:
    """Return a group's last rebalances as JSON values, the oldest first. Takes long; use it aside."""
    ownership, found = Ownership(), []
    for number, rebalance in enumerate(kept):
        effect = ownership.take(rebalance)
        if number >= len(kept) - most:
            found.append(_cut(shown(rebalance, effect)))
    return found


def cut_assignment(assignment: Assignment) -> tuple[Assignment, int]:
    """Return the first MOST_PARTITIONS of an assignment, and how many partitions it has in all.

    assignment: from `shown_assignment`. If it is text, its first characters, and 0.
    """
    if isinstance(assignment, str):
        return assignment[:MOST_PARTITIONS], 0
    first: dict[str, Sequence[int]] = {}
    left = MOST_PARTITIONS
    for topic, partitions in assignment.items():
        if left <= 0:
            break
        first[topic] = partitions[:left]
        left -= len(first[topic])
    return first, sum(map(len, assignment.values()))


def _cut(rebalance: ShownRebalance) -> ShownRebalance:
    members, story = rebalance["members"], rebalance["story"]
    more = len(story) - MOST_SENTENCES
    return {
        **rebalance,
        "moved": (),
        "members_at_cause": (),
        "members": [_cut_part(part) for part in members[:MOST_MEMBERS]],
        "more_members": max(0, len(members) - MOST_MEMBERS),
        "story": [*story[:MOST_SENTENCES], *([f"And {more:,} more sentences."] if more > 0 else [])],
    }


def _cut_part(part: ShownPart) -> ShownPart:
    before, before_count = cut_assignment(part["before"])
    after, after_count = cut_assignment(part["after"])
    return {
        **part,
        "before": before,
        "before_count": before_count,
        "after": after,
        "after_count": after_count,
    }
