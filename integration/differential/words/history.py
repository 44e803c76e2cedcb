"""A history as data: steps of named clients, the same at every version of the protocol.

    History(
        "a follower that joins again unchanged is answered at once",
        cases=[46],
        steps=[*stable("alice", "bob"), rejoin("bob"), heartbeat("alice")],
    )

Every client has a name, which is its client id, and one connection. `Id("bob")` stands in a request for the
member id that the server gave to bob last, `Id("bob", 1)` for the first one it gave; `Generation("bob")` for
the generation it told bob last. `pause` lets time pass and looks which requests are still without an answer.

An *era* stands for the versions of one time: era 3 has v3 of every API, or the next one that exists. Fields
that a version does not have are left out. The words that steps are written in are in `verbs`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from integration.support.wire import API_KEYS
from schemas.api_key import ApiKey
from schemas.registry import VERSIONS

ERAS = range(11)
GROUP = "<group>"
"""In a request: the group that this history has for itself. What follows it in a string stays."""
TOPIC, OTHER_TOPIC, NO_TOPIC = "orders", "payments", "nowhere"
"""Two topics with two partitions each, and one that does not exist."""
SESSION_MS, REBALANCE_MS = 30_000, 30_000
"""Where a history says nothing else, no time runs out."""
TRANSACTION = GROUP + "-transaction"
"""The transactional id of this history's producers."""
MEMBER_ID_REQUIRED_SINCE = 4


class Word:
    """A dataclass whose repr is its source text: only what is not as usual."""

    def __repr__(self) -> str:
        usual = {each.name: each.default for each in dataclasses.fields(self)}  # type: ignore[arg-type]
        given = {name: getattr(self, name) for name in usual}
        words = [f"{name}={value!r}" for name, value in given.items() if value != usual[name]]
        return f"{type(self).__name__}({', '.join(words)})"


@dataclass(frozen=True)
class Id:
    """In a request: the member id that `owner` was given last, or as the `number`-th, from 1."""

    owner: str
    number: int = 0

    def __repr__(self) -> str:
        return f"Id({self.owner!r}, {self.number})" if self.number else f"Id({self.owner!r})"


@dataclass(frozen=True)
class Generation:
    """In a request: the generation that `owner` was told last, and so many `later`; 0 before the first."""

    owner: str
    later: int = 0

    def __repr__(self) -> str:
        return f"Generation({self.owner!r}, {self.later})" if self.later else f"Generation({self.owner!r})"


@dataclass(frozen=True)
class ProducerId:
    """In a request: the producer id that `owner` was given last; -1 before the first."""

    owner: str

    def __repr__(self) -> str:
        return f"ProducerId({self.owner!r})"


@dataclass(frozen=True)
class Epoch:
    """In a request: the producer epoch that `owner` was given last, and so many `later`; -1 before it."""

    owner: str
    later: int = 0

    def __repr__(self) -> str:
        return f"Epoch({self.owner!r}, {self.later})" if self.later else f"Epoch({self.owner!r})"


@dataclass(frozen=True)
class TopicId:
    """In a request: the id that the server gave to the topic of that name last, or as the `number`-th."""

    name: str
    number: int = 0

    def __repr__(self) -> str:
        return f"TopicId({self.name!r}, {self.number})" if self.number else f"TopicId({self.name!r})"


@dataclass(frozen=True)
class NextSequence:
    """In a request: the sequence number that follows the last record which `owner`, as it is now, has brought
    into a partition, and so many `later`; 0 before the first."""

    owner: str
    topic: str
    partition: int
    later: int = 0

    def __repr__(self) -> str:
        later = f", {self.later}" if self.later else ""
        return f"NextSequence({self.owner!r}, {self.topic!r}, {self.partition}{later})"


@dataclass(frozen=True)
class Session:
    """In a request: the fetch session that `owner` was given last, or 0."""

    owner: str

    def __repr__(self) -> str:
        return f"Session({self.owner!r})"


@dataclass(frozen=True)
class SessionEpoch:
    """In a request: the epoch that the session of `owner` is to go on with, and so many `later`."""

    owner: str
    later: int = 0

    def __repr__(self) -> str:
        later = f", {self.later}" if self.later else ""
        return f"SessionEpoch({self.owner!r}{later})"


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A request. Below era `since` it is left out, and so it is above era `until`.

    wait: for its answer; else the history goes on when it is sure that the request has come to rest. era: of
    this one request, where it is not the history's. newest: the version that clients use at most. cut: so
    many bytes are missing at its end.
    """

    client: str
    request: Any
    over: str = ""
    wait: bool = True
    tolerated: str = ""
    since: int = 0
    until: int = ERAS[-1]
    era: int | None = None
    newest: int | None = None
    cut: int = 0

    @property
    def connection(self) -> str:
        return self.over or self.client

    @property
    def api_key(self) -> ApiKey:
        return API_KEYS[type(self.request)]

    def version(self, era: int) -> int:
        versions = VERSIONS[self.api_key]
        newest = versions[-1] if self.newest is None else self.newest
        return min(max(era if self.era is None else self.era, versions[0]), newest)


@dataclass(frozen=True)
class Pause:
    """Let time pass, then look who waits. 0: only look, once everything has come to rest."""

    ms: int
    tolerated: str = ""


@dataclass(frozen=True)
class Answered:
    """Wait until nothing that these clients asked is without an answer."""

    clients: tuple[str, ...]


@dataclass(frozen=True)
class HangUp:
    """Close a connection, whatever has been asked over it."""

    connection: str


Step = Ask | Pause | Answered | HangUp


def tolerated(step: Step) -> str:
    """The key of the difference that is meant at this step, or ""."""
    return step.tolerated if isinstance(step, (Ask, Pause)) else ""


@dataclass(frozen=True)
class History:
    """cases: of the coordinator's list of cases, by number. pair: which two servers (`pairs`). eras: at which
    versions; those that would be the same requests again are left out by `eras_that_differ`. meant_by_rule:
    no step says what is meant to differ, the rules of `meant` do."""

    title: str
    cases: Sequence[int]
    steps: Sequence[Step | Sequence[Step]]
    eras: Iterable[int] = ERAS
    pair: str = "plain"
    meant_by_rule: bool = False

    def at(self, era: int) -> list[Step]:
        """The steps as they are at one era."""
        return [
            step for step in flat(self.steps) if not isinstance(step, Ask) or step.since <= era <= step.until
        ]

    def eras_that_differ(self) -> list[int]:
        """The eras without those in which every request has the version it had before."""
        seen: set[tuple[int, ...]] = set()
        eras = []
        for era in self.eras:
            versions = tuple(step.version(era) for step in self.at(era) if isinstance(step, Ask))
            if versions not in seen:
                seen.add(versions)
                eras.append(era)
        return eras


def flat(steps: Iterable[Step | Sequence[Step]]) -> list[Step]:
    """Verbs may stand for several steps."""
    result: list[Step] = []
    for step in steps:
        result.extend(step if isinstance(step, (list, tuple)) else [step])
    return result
