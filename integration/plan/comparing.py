"""Compares what is measured with what is predicted, and says where they are too far apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import pstdev
from typing import Final, NamedTuple

from integration.plan.scenarios import DURATION_MS, PARTITIONS, Place, Scenario
from kshim.plan.figures import Figures, figures
from kshim.plan.run import Predicted, Run

TOLERANCE: Final = 0.15
TITLES: Final = (
    "Server, client, protocol",
    "Groups",
    "Rebalances",
    "Moves",
    "Partition-seconds without an owner",
    "Apart",
    "Longest pause",
)


class Compared(NamedTuple):
    """One scenario, predicted and measured."""

    scenario: Scenario
    predicted: Predicted
    groups: Sequence[Run]
    """The measured run of each group."""

    @property
    def measured(self) -> Figures:
        """The figures of the groups, as means."""
        return figures([group.happened for group in self.groups], PARTITIONS, DURATION_MS)

    @property
    def _tells_rebalances(self) -> bool:
        return self.scenario.place is not Place.APACHE

    @property
    def _chance_ms(self) -> float:
        """Two standard errors of the measured mean, if groups differ as much as seeds do."""
        of_seeds = [sum(span.ms for span in run.happened.unowned) for run in self.predicted.runs]
        return 2 * pstdev(of_seeds) / sqrt(len(self.groups))

    def faults(self) -> Iterator[str]:
        """What is too far apart, in words. Member ids decide what moves: moves may be those of any seed. The
        longest pause is that of the killed member's partitions, and depends on the time of one heartbeat.
        """
        ours, theirs = self.predicted.figures, self.measured
        moves = [run.happened.moves for run in self.predicted.runs]
        known = theirs.rebalances if self._tells_rebalances else ours.rebalances
        for name, least, most, measured in (
            ("rebalances", ours.rebalances, ours.rebalances, known),
            ("moves", min(moves), max(moves), theirs.moves),
        ):
            if not least * (1 - TOLERANCE) <= measured <= most * (1 + TOLERANCE):
                yield f"{measured:.0f} {name} measured, {least:.0f} to {most:.0f} predicted"
        if abs(theirs.unowned_ms - ours.unowned_ms) > max(TOLERANCE * ours.unowned_ms, self._chance_ms):
            yield f"{theirs.unowned_ms:.0f} ms without an owner measured, {ours.unowned_ms:.0f} predicted"
        longest = [max(span.ms for span in run.happened.unowned) for run in self.predicted.runs]
        longest_ms, interval_ms = theirs.partition_longest_ms, self.scenario.setting.interval_ms
        if not min(longest) - interval_ms <= longest_ms <= max(longest) + interval_ms:
            yield f"a longest pause of {longest_ms} ms, {min(longest)} to {max(longest)} predicted"

    def row(self) -> Sequence[str]:
        """A row under TITLES: predicted, measured."""
        ours, theirs = self.predicted.figures, self.measured
        return (
            self.scenario.title,
            str(len(self.groups)),
            f"{ours.rebalances:.3g}, {f'{theirs.rebalances:.3g}' if self._tells_rebalances else '–'}",
            f"{ours.moves:.3g}, {theirs.moves:.3g}",
            f"{ours.unowned_ms / 1000:.1f}, {theirs.unowned_ms / 1000:.1f}",
            f"{theirs.unowned_ms / ours.unowned_ms - 1:+.1%}",
            f"{ours.partition_longest_ms / 1000:.1f} s, {theirs.partition_longest_ms / 1000:.1f} s",
        )
