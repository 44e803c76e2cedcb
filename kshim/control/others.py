"""The other kshim processes that share the groups with this one: people ask one, and see the groups of all.

A process that does not answer in time is named, with the reason. Its groups are not known then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypedDict, TypeVar, cast

from twisted.internet.defer import Deferred, maybeDeferred

from kshim.control.commands import Command, Commands, SteeringError
from kshim.control.long import Long
from kshim.turns import Turn
from kshim.turns.rounds import Rounds
from kshim.turns.slices import Slices

ROW_US = 30
"""Time to send a row that another process has made."""
HERE = "-here"
"""Ends the names of the commands that show the groups of the asked process alone."""


class NotAnswered(Exception):
    """Another process has not answered. str() is a predicate, such as "does not answer: ..."."""


class Silent(TypedDict):
    """A process that has not answered."""

    kshim: str
    """Where clients reach it."""
    why: str


class Page(NamedTuple):
    """What another process serves over HTTP."""

    status: int
    content_type: str
    body: bytes


class Others(Protocol):
    """Asks the other processes. Each is named by the address at which clients reach it."""

    def all(self) -> Sequence[str]:
        """Return all of them; empty if this process is alone."""

    def leader(self, group_id: str) -> str | None:
        """Return the process that coordinates a group; None if this one does."""

    def run(self, other: str, command: str, *arguments: object) -> Deferred[Any]:
        """Run a command that reads, and fire with its JSON value. Errbacks NotAnswered."""

    def field(self, other: str, target: str, name: str) -> Deferred[Any]:
        """Fire with a field of the JSON object at a target of its HTTP interface. Errbacks NotAnswered."""

    def page(self, other: str, target: str) -> Deferred[Page]:
        """Fire with what is served at a target of its HTTP interface. Errbacks NotAnswered."""


class Heard(NamedTuple):
    """The answers of all other processes."""

    rows: Sequence[Mapping[str, Any]]
    """One for each of their groups, in the order of their ids."""
    silent: Sequence[Silent]


async def hear(others: Others, ask: Callable[[str], Deferred[Any]]) -> Heard:
    """Ask all other processes at once for the rows of their groups."""
    asked = [(each, ask(each)) for each in others.all()]
    rows: list[Mapping[str, Any]] = []
    silent: list[Silent] = []
    for each, answer in asked:
        try:
            rows += await answer
        except NotAnswered as error:
            silent.append({"kshim": each, "why": str(error)})
    return Heard(sorted(rows, key=_group_id), silent)


R = TypeVar("R")


async def merged(
    slices: Slices, ours: AsyncIterator[R], theirs: Sequence[Mapping[str, Any]]
) -> AsyncIterator[R]:
    """Yield the rows of all groups in the order of their ids. Both kinds are in that order.

    A group that has just moved may be in both; it is yielded once, as it is here.
    """
    rest = iter(theirs)
    other = next(rest, None)
    async for row in ours:
        group_id = _group_id(cast("Mapping[str, Any]", row))
        while other is not None and _group_id(other) <= group_id:
            if _group_id(other) < group_id:
                await slices.spend(ROW_US)
                yield cast("R", other)
            other = next(rest, None)
        yield row
    while other is not None:
        await slices.spend(ROW_US)
        yield cast("R", other)
        other = next(rest, None)


def _group_id(row: Mapping[str, Any]) -> str:
    return str(row["group_id"])


def of_everybody(groups: Command, why: Command, others: Others, rounds: Rounds) -> Commands:
    """Return the commands `groups` and `why` of all processes together, and both for this one alone.

    groups: a command that returns a coroutine of a `Long`.
    """
    return {
        "groups": _of_all(groups, others, rounds),
        "why": _at_leader(why, others),
        f"groups{HERE}": groups,
        f"why{HERE}": why,
    }


def _of_all(groups: Command, others: Others, rounds: Rounds) -> Command:
    """Add the groups of the others, and `silent`: those that do not answer."""

    async def run() -> Long:
        heard = Deferred.fromCoroutine(hear(others, lambda each: _listed(others, each)))
        ours: Any = await maybeDeferred(groups.run)
        rows, silent = await heard
        facts = {**ours.facts, "silent": silent} if others.all() else ours.facts
        return Long(facts, {"groups": merged(Slices(rounds, Turn()), ours.lists["groups"], rows)})

    return Command(run)


def _listed(others: Others, other: str) -> Deferred[Any]:
    return others.run(other, f"groups{HERE}").addCallback(lambda listed: listed["groups"])


def _at_leader(why: Command, others: Others) -> Command:
    """Ask the process that coordinates the group."""

    async def run(group_id: str) -> object:
        other = others.leader(group_id)
        if other is None:
            return await maybeDeferred(why.run, group_id)
        try:
            found = await others.run(other, f"why{HERE}", group_id)
        except NotAnswered as error:
            raise SteeringError(coordinated_by(group_id, other, error)) from error
        return {**found, "coordinated_by": other}

    return Command(run, why.types)


def coordinated_by(group_id: str, other: str, error: NotAnswered) -> str:
    """Say in a line which process coordinates a group, and why it could not be asked."""
    return f"group {group_id} is coordinated by the kshim at {other}, which {error}"
