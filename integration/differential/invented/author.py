"""Who invents a history: a temper, and subjects to speak of, each as often as chance has it."""

from __future__ import annotations

import abc
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from integration.differential.invented.said import Said

T = TypeVar("T")


class Author(abc.ABC):
    """said: the history so far. carelessness: how likely it is that something is wrong. topics: what may be
    spoken of, and how likely it is compared with the others."""

    era: int
    carelessness: float
    topics: dict[Callable[[], None], float]

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.said: list[Said] = []

    @abc.abstractmethod
    def write(self) -> None:
        """Say all of the history."""

    def say(self, verb: str, *args: Any, **options: Any) -> None:
        self.said.append(Said(verb, args, tuple(options.items())))

    def tell(self, count: int) -> None:
        """Say so many things."""
        until = len(self.said) + count
        while len(self.said) < until:
            (topic,) = self.chance.choices(list(self.topics), list(self.topics.values()))
            topic()

    def slips(self, factor: float = 1) -> bool:
        return self.chance.random() < self.carelessness * factor

    def any(self, *some: T) -> T:
        return self.chance.choice(some)

    def some(self, choices: Sequence[T], least: int = 1, most: int = 3) -> list[T]:
        """Some of them, each at most once."""
        count = self.chance.randint(least, most)
        return self.chance.sample(choices, min(count, len(choices)))

    def good_or(self, good: T, *odd: T, factor: float = 1) -> T:
        """Mostly the good one."""
        return self.chance.choice(odd) if self.slips(factor) else good
