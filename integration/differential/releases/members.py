"""Invented histories of consumer groups, played to two releases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from integration.differential.members.__main__ import two_sides
from integration.differential.members.history import History
from integration.differential.playing.pairs import Pair

SUBJECT = "members"


def played(pair: Pair, seeds: Iterable[int]) -> Iterator[str]:
    """The histories that differ, each with the end of what was said; then the numbers of all."""
    answers: Counter[str] = Counter()
    histories = differing = 0
    with two_sides(pair) as sides:
        for seed in seeds:
            history = History(seed, sides)
            histories += 1
            try:
                history.play()
            except AssertionError as difference:
                differing += 1
                yield f"seed {seed}:\n{difference}"
            answers += history.answers
    yield f"{differing} of {histories} differ, {answers.total()} answers"
