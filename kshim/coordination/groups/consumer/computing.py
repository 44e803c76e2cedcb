"""Computes a group's target, a bounded number of steps at a time.

The target is for the group as it was when the computation began, and for its epoch then. What changes
meanwhile counts for the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kshim.coordination.groups.consumer.assignors.spec import InSteps
from kshim.coordination.groups.consumer.partitions import Assignment

MOST_STEPS = 5_000
"""How many steps are done at a time before others get their turn: at most some ms of work."""


class Computation:
    """The computation of one target."""

    def __init__(
        self, epoch: int, member_ids: Collection[str], work: InSteps[Mapping[str, Assignment]]
    ) -> None:
        self.epoch = epoch
        """The group epoch that the target is for."""
        self.member_ids = member_ids
        """The members that the target is for."""
        self.targets: Mapping[str, Assignment] = {}
        """The targets of members, once they are computed. Members that are missing get nothing."""
        self._work = self._compute(work)

    def go_on(self) -> bool:
        """Do a part of the work; return True if that was the last."""
        left = MOST_STEPS
        for steps in self._work:
            left -= steps
            if left <= 0:
                return False
        return True

    def _compute(self, work: InSteps[Mapping[str, Assignment]]) -> InSteps[None]:
        self.targets = yield from work
