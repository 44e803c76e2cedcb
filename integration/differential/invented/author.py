"""The author of an invented history: a temper, and a weighted random choice of what to say."""

from __future__ import annotations

import abc
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from integration.differential.invented.said import Said

T = TypeVar("T")


class Author(abc.ABC):
    """Writes one history."""

    era: int
    carelessness: float
    """The probability of a mistake."""
    topics: dict[Callable[[], None], float]
    """The functions that may add the next steps, and the weight of each in the random choice."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.said: list[Said] = []
        """The history so far."""

    @abc.abstractmethod
    def write(self) -> None:
        """Write the whole history."""

    def say(self, verb: str, *args: Any, **options: Any) -> None:
        self.said.append(Said(verb, args, tuple(options.items())))

    def tell(self, count: int) -> None:
        """Say at least `count` things."""
        until = len(self.said) + count
        while len(self.said) < until:
            (topic,) = self.chance.choices(list(self.topics), list(self.topics.values()))
            topic()

    def slips(self, factor: float = 1) -> bool:
        return self.chance.random() < self.carelessness * factor

    def any(self, *some: T) -> T:
        return self.chance.choice(some)

    def some(self, choices: Sequence[T], least: int = 1, most: int = 3) -> list[T]:
        """Some of the choices, each at most once."""
        count = self.chance.randint(least, most)
        return self.chance.sample(choices, min(count, len(choices)))

    def good_or(self, good: T, *odd: T, factor: float = 1) -> T:
        """Mostly the good value."""
        return self.chance.choice(odd) if self.slips(factor) else good
