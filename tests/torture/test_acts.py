"""What is done to instances and to the server, with a stage and instances that only remember it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from kshim.torture import acts
from kshim.torture.acts import SESSION_MS, Acts
from kshim.torture.evidence import Happening
from kshim.torture.faults import FAULTS, Request
from kshim.torture.schedule import Event
from kshim.torture.stage import Note, Refused

PLAIN, AFTER_A_COMMIT = 0, 1
"""Values of `choice`: strike at once, or right after a commit."""


class Time:
    """A clock that only moves when something is due."""

    def __init__(self) -> None:
        self.ms = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def later(self, after_ms: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.ms + after_ms, next(self._numbers), do))

    def run(self, until_ms: float) -> None:
        while self._queue and self._queue[0][0] <= until_ms:
            self.ms, _, do = heapq.heappop(self._queue)
            do()
        self.ms = until_ms


class Instance:
    """Remembers what was done to it."""

    def __init__(self, name: str, time: Time) -> None:
        self.name, self._time = name, time
        self.runs = self.is_wanted = True
        self.is_frozen = False
        self.status: int | None = None
        self.started_ms = 0.0
        self.done: list[str] = []

    def start(self) -> None:
        self.runs, self.started_ms = True, self._time.ms
        self.done.append("start")

    def kill(self) -> None:
        self.runs, self.status = False, -9
        self.done.append("kill")

    def ask_to_end(self) -> None:
        self.runs, self.status = False, 0
        self.done.append("ask")

    def freeze(self) -> None:
        self.is_frozen = True
        self.done.append("freeze")

    def go_on(self) -> None:
        self.is_frozen = False
        self.done.append("go on")


class Stage:
    """Refuses what concerns members that it does not have; remembers the rest."""

    def __init__(self) -> None:
        self.members: set[str] = set()
        self.static: dict[str, str] = {}
        """Members by their group.instance.id."""
        self.noted: list[Note] = []
        self.done: list[Any] = []

    def notes(self) -> list[Note]:
        return list(self.noted)

    def expire(self, group: str, member: str) -> None:
        if member not in self.members:
            raise Refused(f"no member {member}")
        self.members.remove(member)
        self.done.append(("expire", member))

    put_out = expire

    def static_member(self, group: str, instance_id: str) -> str:
        if self.static.get(instance_id) not in self.members:
            raise Refused(f"no member has {instance_id}")
        return self.static[instance_id]

    def fail_requests(self, request: Request, lasts_ms: int) -> str:
        self.done.append(request)
        return "fails"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def remember(*arguments: Any) -> Any:
            self.done.append((name, *arguments))
            return {"stop_broker": 2, "add_partitions": 6}.get(name, name)

        return remember


class Playing:
    def __init__(self) -> None:
        self.time, self.stage = Time(), Stage()
        self.later = self.time.later
        self.group, self.topic = "g", "in"
        self.instances = {name: Instance(name, self.time) for name in ("c1", "c2")}
        self.said: list[Happening] = []
        self.happened = self.said.append
        made: Any = self
        self.acts = Acts(made)

    @property
    def producing(self) -> Any:
        raise AssertionError("nothing is produced")

    def new_instance(self) -> Instance:
        instance = self.instances["c3"] = Instance("c3", self.time)
        return instance

    def joins(self, instance: str, member: str, static_id: str | None = None, address: str = "") -> None:
        """address: where its connection comes from; without one, each member has its own."""
        self.stage.members.add(member)
        note = {"what": "joined", "at_ms": self.time.ms, "listener": instance.upper(), "group": "g"}
        sender = {"address": address or member, "error": ""}
        self.stage.noted.append({**note, **sender, "member": member, "instance": static_id})

    def begins_to_join(self, instance: str, member: str, static_id: str) -> None:
        """A static member whose first join is not answered yet."""
        self.stage.members.add(member)
        self.stage.static[static_id] = member
        note = {"what": "joins", "at_ms": self.time.ms, "listener": instance.upper(), "group": "g"}
        self.stage.noted.append({**note, "member": "", "instance": static_id})

    def commits(self, instance: str) -> None:
        self.stage.noted.append({"what": "committed", "listener": instance.upper()})


@pytest.fixture
def playing(monkeypatch: pytest.MonkeyPatch) -> Playing:
    made = Playing()
    monkeypatch.setattr(acts, "now_ms", lambda: made.time.ms)
    made.joins("c1", "first")
    return made


def do(playing: Playing, name: str, instance: int = 0, lasts_ms: int = 0, choice: int = PLAIN) -> None:
    playing.acts.do(Event(0, name, instance, lasts_ms, choice))


def test_a_killed_process_loses_its_session_and_the_next_one_keeps_its_own(playing: Playing) -> None:
    do(playing, "kill", 1, lasts_ms=300)
    playing.time.run(400)
    assert playing.instances["c1"].done == ["kill", "start"]
    playing.joins("c1", "second")
    playing.time.run(SESSION_MS + 100)
    assert playing.stage.members == {"second"}


def test_a_member_that_another_coordinator_knows_again_is_buried_again(playing: Playing) -> None:
    do(playing, "kill", 1, lasts_ms=300)
    playing.time.run(SESSION_MS + 100)
    playing.stage.members |= {"first", "another"}
    made: Any = playing
    Acts(made).bury()
    assert playing.stage.members == {"first", "another"}, "these acts have killed nobody"
    playing.acts.bury()
    assert playing.stage.members == {"another"}


def test_a_frozen_member_may_come_back_to_another_coordinator(playing: Playing) -> None:
    do(playing, "freeze", 1, lasts_ms=1000)
    playing.time.run(2000)
    playing.stage.members.add("first")
    playing.acts.bury()
    assert playing.stage.members == {"first"}


def test_a_member_that_left_or_was_replaced_is_buried_but_no_static_one(playing: Playing) -> None:
    playing.joins("c2", "static", "static-2")
    do(playing, "stop", 1, lasts_ms=400)
    do(playing, "stop", 2, lasts_ms=400)
    playing.time.run(1000)
    playing.acts.bury()
    assert playing.stage.members == {"static"}
    playing.joins("c1", "old")
    do(playing, "expire", 1)
    playing.time.run(1100)
    playing.joins("c1", "new")
    playing.stage.members.add("old")
    playing.acts.bury()
    assert playing.stage.members == {"static", "new"}


def test_a_member_whose_client_has_joined_anew_is_buried(playing: Playing) -> None:
    playing.joins("c1", "unused", address="host:1")
    playing.joins("c1", "beside", address="host:2")
    playing.joins("c1", "used", address="host:1")
    playing.acts.bury()
    assert "unused" not in playing.stage.members
    assert playing.stage.members >= {"beside", "used"}


def test_a_kill_waits_for_a_commit_of_its_instance(playing: Playing) -> None:
    do(playing, "kill", 1, lasts_ms=300, choice=AFTER_A_COMMIT)
    playing.time.run(100)
    playing.commits("c2")
    playing.time.run(200)
    assert playing.instances["c1"].done == []
    playing.commits("c1")
    playing.time.run(210)
    assert playing.instances["c1"].done == ["kill"]


def test_a_kill_waits_only_so_long(playing: Playing) -> None:
    do(playing, "kill", 1, lasts_ms=300, choice=AFTER_A_COMMIT)
    playing.time.run(acts.AIM_MS + 10)
    assert playing.instances["c1"].done == ["kill"]


def test_a_frozen_instance_loses_its_session_and_goes_on(playing: Playing) -> None:
    do(playing, "freeze", 1, lasts_ms=1000)
    playing.time.run(900)
    assert (playing.instances["c1"].is_frozen, playing.stage.members) == (True, set())
    playing.time.run(1100)
    assert playing.instances["c1"].done == ["freeze", "go on"]


def test_an_instance_that_is_asked_to_end_keeps_its_session(playing: Playing) -> None:
    do(playing, "stop", 1, lasts_ms=400)
    playing.time.run(2000)
    assert playing.instances["c1"].done == ["ask", "start"]
    assert playing.stage.members == {"first"}


def test_a_guest_leaves_for_good_and_loses_its_session(playing: Playing) -> None:
    do(playing, "join", lasts_ms=1000)
    playing.joins("c3", "guest", "static-3")
    playing.time.run(3000)
    assert playing.instances["c3"].done == ["start", "ask"]
    assert playing.stage.members == {"first"}


def test_a_static_member_that_dies_while_its_first_join_waits_is_ended(playing: Playing) -> None:
    do(playing, "join", lasts_ms=1000)
    playing.begins_to_join("c3", "waiting", "static-3")
    playing.time.run(1000 + SESSION_MS + 200)
    assert ("expire", "waiting") in playing.stage.done
    playing.begins_to_join("c2", "second", "static-2")
    do(playing, "kill", 2, 300)
    playing.time.run(playing.time.ms + SESSION_MS + 1000)
    assert playing.stage.done[-1] == ("expire", "second")


def test_a_slow_instance_stands_still_most_of_the_time_and_is_put_out(playing: Playing) -> None:
    do(playing, "slow", 1, lasts_ms=1000)
    playing.time.run(3000)
    done = playing.instances["c1"].done
    assert done == ["freeze", "go on"] * 10
    assert playing.stage.members == set()


def test_what_does_not_run_is_not_struck(playing: Playing) -> None:
    playing.instances["c1"].runs = False
    for name in ("kill", "stop", "freeze", "slow"):
        do(playing, name, 1)
    playing.time.run(1000)
    assert playing.instances["c1"].done == []
    assert all("did not run" in each.text for each in playing.said)


def test_only_static_members_and_transactional_producers_are_fenced(playing: Playing) -> None:
    do(playing, "static", 1)
    do(playing, "producer", 1)
    assert [each.text for each in playing.said] == [
        "c1 is no static member, so it was not fenced",
        "c1 has no transactional.id, so it was not fenced",
    ]
    playing.joins("c1", "second", "static-1")
    playing.stage.noted.append({"what": "producer", "listener": "C1", "transaction": "t-1"})
    do(playing, "static", 1)
    do(playing, "producer", 1)
    assert playing.stage.done == [("fence", "g", "static-1"), ("fence_producer", "t-1")]


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.requests])
def test_requests_fail_as_the_table_says(playing: Playing, name: str) -> None:
    found = FAULTS[name].requests
    for choice in range(len(found)):
        do(playing, name, choice=choice)
    assert tuple(playing.stage.done) == found


def test_a_step_that_is_refused_is_said(playing: Playing, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Refused("no other broker runs")

    monkeypatch.setattr(playing.stage, "move_coordinator", refuse, raising=False)
    do(playing, "coordinator")
    assert [each.text for each in playing.said] == ["coordinator was not possible: no other broker runs"]
