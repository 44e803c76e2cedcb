"""An author whose histories have their own topics and use every version of every API."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

from integration.differential.invented.author import Author
from integration.differential.words.history import ERAS, GROUP, TopicId
from schemas.api_key import ApiKey
from schemas.registry import VERSIONS

A, B, NONE = GROUP + "-a", GROUP + "-b", GROUP + "-none"
"""Two topics, and a name that no topic has."""
UNKNOWN_ID, ZERO_ID = UUID(int=4711), UUID(int=0)
BAD_NAMES = ("", ".", "..", "a b", "é", "x" * 250)


class TopicsAuthor(Author):
    """Writes about the topics A and B."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.era = chance.choice(ERAS)
        self.carelessness = chance.choice((0.02, 0.1, 0.1, 0.3))
        self.versions = {api: chance.choice(versions) for api, versions in VERSIONS.items()}
        self.partitions = {A: chance.choice((1, 2, 2, 3)), B: chance.choice((1, 1, 2))}
        """How many partitions A and B are created with."""

    def ask(self, api: ApiKey, verb: str, client: str, *args: Any, **options: Any) -> None:
        """Mostly at the version that this history has chosen for the API."""
        usual = self.versions[api]
        version = self.chance.choice(VERSIONS[api]) if self.chance.random() < 0.2 else usual
        self.say(verb, client, *args, **options, era=version)

    def weigh(self) -> None:
        """Choose at random what this history mostly says."""
        for topic in self.topics:
            self.topics[topic] *= self.chance.choice((0.2, 1, 1, 3))

    def topic(self) -> str:
        return self.good_or(self.any(A, A, B), NONE, factor=0.5)

    def partition(self, topic: str) -> int:
        return self.good_or(self.chance.randrange(self.partitions.get(topic, 2)), 9, -1, factor=0.5)

    def place(self) -> tuple[str, int]:
        topic = self.topic()
        return topic, self.partition(topic)

    def places(self, most: int = 4) -> list[tuple[str, int]]:
        """Different places, grouped by topic."""
        return sorted({self.place() for _ in range(self.chance.randint(1, most))})

    def by_name_or_id(self, topic: str) -> Any:
        """How a request names a topic; sometimes by an unknown id."""
        return self.good_or(topic, TopicId(topic, 1), UNKNOWN_ID, factor=0.3)
