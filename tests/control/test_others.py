"""The groups of several processes as one list, and the processes that do not answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kshim.control.commands import Command, Commands, SteeringError
from kshim.control.long import Long
from kshim.control.others import NotAnswered, Page, of_everybody
from kshim.turns.rounds import Rounds


class Others:
    """Two other processes, of which one may be silent. Implements `kshim.control.others.Others`."""

    def __init__(self, groups: dict[str, Sequence[str]], silent: str = "") -> None:
        self.groups, self.silent = groups, silent
        self.asked: list[str] = []

    def all(self) -> Sequence[str]:
        return list(self.groups)

    def leader(self, group_id: str) -> str | None:
        return next((each for each, ids in self.groups.items() if group_id in ids), None)

    def run(self, other: str, command: str, *arguments: object) -> Deferred[Any]:
        self.asked.append(command)
        if other == self.silent:
            return fail(NotAnswered("does not answer: it sleeps"))
        if command == "why-here":
            return succeed({"now": arguments[0]})
        return succeed({"groups": [{"group_id": each} for each in self.groups[other]]})

    def field(self, other: str, target: str, name: str) -> Deferred[Any]:
        raise NotImplementedError

    def page(self, other: str, target: str) -> Deferred[Page]:
        raise NotImplementedError


async def _rows(ids: Sequence[str]) -> AsyncIterator[object]:
    for each in ids:
        yield {"group_id": each, "is_ours": True}


def commands(ours: Sequence[str], others: Others) -> Commands:
    async def groups() -> Long:
        return Long({"now_ms": 7}, {"groups": _rows(ours)})

    async def why(group_id: str) -> object:
        return {"now": f"our {group_id}"}

    return of_everybody(Command(groups), Command(why, (str,)), others, Rounds(Clock()))


def done(command: Command, *arguments: object) -> Any:
    """The command's result."""
    found: list[Any] = []

    async def run() -> object:
        result: Any = await command.run(*arguments)
        if not isinstance(result, Long):
            return result
        return {
            **result.facts,
            **{name: [each async for each in rows] for name, rows in result.lists.items()},
        }

    Deferred.fromCoroutine(run()).addBoth(found.append)
    return found[0]


def test_all_groups_are_listed_in_order_and_each_once() -> None:
    others = Others({"a:1": ["b", "d"], "c:1": ["a", "e", "f"]})
    listed = done(commands(["c", "e"], others)["groups"])
    assert [each["group_id"] for each in listed["groups"]] == ["a", "b", "c", "d", "e", "f"]
    assert [each["group_id"] for each in listed["groups"] if "is_ours" in each] == ["c", "e"]
    assert (listed["now_ms"], listed["silent"]) == (7, [])


def test_a_process_that_does_not_answer_is_named() -> None:
    others = Others({"a:1": ["b", "d"], "c:1": ["a"]}, silent="a:1")
    listed = done(commands(["e"], others)["groups"])
    assert [each["group_id"] for each in listed["groups"]] == ["a", "e"]
    assert listed["silent"] == [{"kshim": "a:1", "why": "does not answer: it sleeps"}]


def test_a_process_that_is_alone_names_nobody() -> None:
    assert "silent" not in done(commands(["e"], Others({}))["groups"])


def test_here_means_here() -> None:
    others = Others({"a:1": ["b"]})
    listed = done(commands(["e"], others)["groups-here"])
    assert [each["group_id"] for each in listed["groups"]] == ["e"]
    assert done(commands(["e"], others)["why-here"], "b") == {"now": "our b"}
    assert others.asked == []


def test_the_process_that_coordinates_a_group_says_why() -> None:
    others = Others({"a:1": ["b"]})
    assert done(commands([], others)["why"], "b") == {"now": "b", "coordinated_by": "a:1"}
    assert done(commands([], others)["why"], "e") == {"now": "our e"}


def test_of_a_group_whose_coordinator_is_silent_that_is_said() -> None:
    failure = done(commands([], Others({"a:1": ["b"]}, silent="a:1"))["why"], "b")
    line = "group b is coordinated by the kshim at a:1, which does not answer: it sleeps"
    with pytest.raises(SteeringError, match=line):
        failure.raiseException()
