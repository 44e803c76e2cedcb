"""The search without a tool: changes of known inputs; an input that goes another way becomes a known one.

It depends on nothing but its seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.fuzz.mutation import mutated
from tests.fuzz.target import MAX_SECONDS, Finding, Target, examine, examine_memory

_MOST_OF_A_SHAPE = 3
_MOST_BYTES_KEPT = 4096


@dataclass(slots=True)
class Search:
    """The progress of a search."""

    target: Target
    seed: int
    max_seconds: float = MAX_SECONDS
    found: Callable[[Finding], None] = lambda finding: None
    executions: int = 0
    corpus: list[bytes] = field(default_factory=list)
    findings: dict[str, Finding] = field(default_factory=dict)
    """The first of each place."""
    _shapes: dict[str, int] = field(default_factory=dict)

    def run(self, executions: int) -> None:
        """Examine the seeds of the target, then changes of what is known, until so many are examined."""
        chance = Random(f"{self.target.name} {self.seed}")
        for data in self.target.seeds(chance):
            self._examine(data, is_seed=True)
        while self.executions < executions:
            known = chance.choice(self.corpus)
            self._examine(mutated(known, self.corpus, self.target.words, chance))

    def _examine(self, data: bytes, *, is_seed: bool = False) -> None:
        self.executions += 1
        outcome = examine(self.target, data, self.max_seconds)
        if outcome.finding is not None:
            self._note(outcome.finding)
            if not is_seed:
                return
        seen = self._shapes.get(outcome.shape, 0)
        if is_seed or (seen < _MOST_OF_A_SHAPE and len(data) <= _MOST_BYTES_KEPT):
            self._shapes[outcome.shape] = seen + 1
            self.corpus.append(data)
            large = examine_memory(self.target, data)
            if large is not None:
                self._note(large)

    def _note(self, finding: Finding) -> None:
        if finding.place not in self.findings:
            self.findings[finding.place] = finding
            self.found(finding)
