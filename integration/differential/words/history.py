"""A history as data: steps of named clients, the same at every version of the protocol.

    History(
        "a follower that joins again unchanged is answered at once",
        cases=[46],
        steps=[*stable("alice", "bob"), rejoin("bob"), heartbeat("alice")],
    )

Every client has a name, which is its client id, and one connection. In a request, `Id("bob")` stands for the
last member id that the server gave to bob, `Id("bob", 1)` for the first, and `Generation("bob")` for the last
generation. `pause` lets time pass, then notes which requests are still unanswered.

An *era* stands for the versions of one time: era 3 has v3 of every API, or the next one that exists. Fields
that a version does not have are left out. The verbs that make steps are in the other modules of this package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kshim.testing.wire import api_key_of
from schemas.api_key import ApiKey
from schemas.registry import VERSIONS

ERAS = range(11)
GROUP = "<group>"
"""In a request: this history's own group. It may be the beginning of a longer name."""
TOPIC, OTHER_TOPIC, NO_TOPIC = "orders", "payments", "nowhere"
"""Two topics with two partitions each, and one that does not exist."""
SESSION_MS, REBALANCE_MS = 30_000, 30_000
"""Long enough never to run out; the default."""
TRANSACTION = GROUP + "-transaction"
"""The transactional id of this history's producers."""
MEMBER_ID_REQUIRED_SINCE = 4


class Word:
    """A dataclass whose repr is its source text, without the fields that have their default."""

    def __repr__(self) -> str:
        usual = {each.name: each.default for each in dataclasses.fields(self)}
        given = {name: getattr(self, name) for name in usual}
        words = [f"{name}={value!r}" for name, value in given.items() if value != usual[name]]
        return f"{type(self).__name__}({', '.join(words)})"


class Symbol:
    """A dataclass in a request that stands for what the server gave. Its repr is its source text, without a
    zero at the end.
    """

    def __repr__(self) -> str:
        fields = dataclasses.fields(self)
        given = [getattr(self, each.name) for each in fields]
        if given[-1] == fields[-1].default:
            given.pop()
        return f"{type(self).__name__}({', '.join(map(repr, given))})"


@dataclass(frozen=True, repr=False)
class Id(Symbol):
    """In a request: the last member id that `owner` was given, or the `number`-th, from 1."""

    owner: str
    number: int = 0


@dataclass(frozen=True, repr=False)
class Generation(Symbol):
    """In a request: the last generation that `owner` was given, plus `later`; 0 before the first."""

    owner: str
    later: int = 0


@dataclass(frozen=True, repr=False)
class ProducerId(Symbol):
    """In a request: the last producer id that `owner` was given; -1 before the first."""

    owner: str


@dataclass(frozen=True, repr=False)
class Epoch(Symbol):
    """In a request: the last producer epoch that `owner` was given, plus `later`; -1 before the first."""

    owner: str
    later: int = 0


@dataclass(frozen=True, repr=False)
class TopicId(Symbol):
    """In a request: the last id that the server gave to the topic `name`, or the `number`-th, from 1."""

    name: str
    number: int = 0


@dataclass(frozen=True, repr=False)
class NextSequence(Symbol):
    """In a request: the sequence number after the last record that `owner`, with its current epoch, has
    written to a partition, plus `later`; 0 before the first."""

    owner: str
    topic: str
    partition: int
    later: int = 0


@dataclass(frozen=True, repr=False)
class Session(Symbol):
    """In a request: the last fetch session that `owner` was given, or 0."""

    owner: str


@dataclass(frozen=True, repr=False)
class SessionEpoch(Symbol):
    """In a request: the next epoch of `owner`'s fetch session, plus `later`."""

    owner: str
    later: int = 0


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A request."""

    client: str
    request: Any
    over: str = ""
    wait: bool = True
    """Wait for its answer; else the history goes on once the request has come to rest."""
    tolerated: str = ""
    since: int = 0
    """Below this era it is left out."""
    until: int = ERAS[-1]
    """Above this era it is left out."""
    era: int | None = None
    """This request's era, if not the history's."""
    newest: int | None = None
    """The newest version that clients use."""
    cut: int = 0
    """How many bytes are missing at the end."""

    @property
    def connection(self) -> str:
        return self.over or self.client

    @property
    def api_key(self) -> ApiKey:
        return api_key_of(self.request)

    def version(self, era: int) -> int:
        versions = VERSIONS[self.api_key]
        newest = versions[-1] if self.newest is None else self.newest
        return min(max(era if self.era is None else self.era, versions[0]), newest)


@dataclass(frozen=True)
class Pause:
    """Let time pass, then note who waits. With 0 ms, note it once everything has come to rest."""

    ms: int
    tolerated: str = ""


@dataclass(frozen=True)
class Answered:
    """Wait until all requests of these clients are answered."""

    clients: tuple[str, ...]


@dataclass(frozen=True)
class HangUp:
    """Close a connection, whatever was sent over it."""

    connection: str


Step = Ask | Pause | Answered | HangUp


def tolerated(step: Step) -> str:
    """The key of the meant difference at this step, or ""."""
    return step.tolerated if isinstance(step, (Ask, Pause)) else ""


@dataclass(frozen=True)
class History:
    """Steps to play at several versions."""

    title: str
    cases: Sequence[int]
    """Numbers in the coordinator's list of cases."""
    steps: Sequence[Step | Sequence[Step]]
    eras: Iterable[int] = ERAS
    """The versions to play it at; `eras_that_differ` drops those that repeat the same requests."""
    pair: str = "plain"
    """The pair of servers to play it against (`pairs`)."""
    meant_by_rule: bool = False
    """The rules of `meant` find the meant differences; no step names them."""

    def at(self, era: int) -> list[Step]:
        """The steps of one era."""
        return [
            step for step in flat(self.steps) if not isinstance(step, Ask) or step.since <= era <= step.until
        ]

    def eras_that_differ(self) -> list[int]:
        """The eras, without those that repeat the versions of an earlier one."""
        seen: set[tuple[int, ...]] = set()
        eras = []
        for era in self.eras:
            versions = tuple(step.version(era) for step in self.at(era) if isinstance(step, Ask))
            if versions not in seen:
                seen.add(versions)
                eras.append(era)
        return eras


def flat(steps: Iterable[Step | Sequence[Step]]) -> list[Step]:
    """All steps in one list: a verb may stand for several."""
    result: list[Step] = []
    for step in steps:
        result.extend(step if isinstance(step, (list, tuple)) else [step])
    return result
