"""Other kshim processes are asked over HTTP; one that cannot be asked, or is silent, is said to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.client.faults import ClientError
from kshim.client.http_commands import Fetched
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.control.others import NotAnswered
from kshim.upstream.fellows import Fellow, new_fellow
from kshim.upstream.others import ANSWER_S, SILENT_S, OtherKshim

HERE = new_fellow({"PLAINTEXT": Endpoint("10.0.0.1", 9092)})
THERE = new_fellow({"PLAINTEXT": Endpoint("10.0.0.2", 9092)}, http=Endpoint("10.0.0.2", 8080))
AT = "10.0.0.2:9092"


class Threads(Clock):
    """A reactor whose threads do what they are given when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Callable[[], None]] = []

    def getThreadPool(self) -> Threads:  # noqa: N802
        return self

    def callFromThread(self, do: Callable[..., object], *arguments: object) -> None:  # noqa: N802
        do(*arguments)

    def callInThreadWithCallback(  # noqa: N802
        self, on_result: Callable[[bool, Any], None], do: Callable[..., Any], *arguments: Any
    ) -> None:
        def work() -> None:
            from twisted.python.failure import Failure

            try:
                result = do(*arguments)
            except Exception:
                on_result(False, Failure())
            else:
                on_result(True, result)

        self.waiting.append(work)

    def work(self) -> None:
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each()


class Shards:
    def __init__(self, *others: Fellow) -> None:
        self.others: Sequence[Fellow] = others
        self.told = 0

    def here(self) -> Fellow:
        return HERE

    def fellows(self) -> Sequence[Fellow]:
        return (HERE, *self.others) if self.others else ()

    def leader(self, shard: int) -> Fellow | None:
        return (HERE, *self.others)[shard] if self.others else None

    def tell(self) -> None:
        self.told += 1


class World:
    def __init__(self, *others: Fellow, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
        self.threads, self.shards = Threads(), Shards(*others)
        self.others = OtherKshim(self.threads, Config(), self.shards, len)  # type: ignore[arg-type]
        self.fetched: list[tuple[str, str]] = []
        self.answer: Fetched | ClientError = Fetched(200, "text/html", b'{"groups": [1]}')
        if monkeypatch is not None:
            monkeypatch.setattr("kshim.client.http_commands.fetch", self._fetch)

    def _fetch(self, at: Endpoint, token: str, target: str, *_: Any, **limits: Any) -> Fetched:
        assert limits["answer_s"] == ANSWER_S
        self.fetched.append((str(at), target))
        if isinstance(self.answer, ClientError):
            raise self.answer
        return self.answer

    def why_not(self, asked: Deferred[Any]) -> str:
        """Why another process has not answered."""
        failures: list[Any] = []
        asked.addErrback(failures.append)
        self.threads.work()
        assert failures
        failures[0].trap(NotAnswered)
        return str(failures[0].value)


def test_the_others_and_who_coordinates() -> None:
    others = World(THERE).others
    assert others.all() == [AT]
    assert others.leader("") is None, "the first shard is led here"
    assert others.leader("x") == AT
    alone = World().others
    assert alone.all() == []
    assert alone.leader("x") is None


def test_pages_and_fields_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(THERE, monkeypatch=monkeypatch)
    found: list[Any] = []
    world.others.field(AT, "/groups?here=true", "groups").addCallback(found.append)
    world.others.page(AT, "/page/groups/g").addCallback(found.append)
    world.threads.work()
    assert found == [[1], (200, "text/html", b'{"groups": [1]}')]
    assert world.fetched == [("10.0.0.2:8080", "/groups?here=true"), ("10.0.0.2:8080", "/page/groups/g")]


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (
            new_fellow(THERE.addresses),
            "says of no HTTP interface: start it with --http HOST:PORT (http.listener)",
        ),
        (
            new_fellow(THERE.addresses, http=Endpoint("127.0.0.1", 8080)),
            "serves HTTP to its own machine alone, at 127.0.0.1:8080 (http.listener)",
        ),
    ],
)
def test_a_process_that_cannot_be_asked(there: Fellow, why: str) -> None:
    world = World(there)
    assert world.why_not(world.others.page(AT, "/")) == why


def test_the_loopback_of_the_same_machine_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbour = new_fellow({"PLAINTEXT": Endpoint("10.0.0.1", 9093)}, http=Endpoint("127.0.0.1", 8080))
    world = World(neighbour, monkeypatch=monkeypatch)
    found: list[Any] = []
    world.others.page("10.0.0.1:9093", "/").addCallback(found.append)
    world.threads.work()
    assert found


def test_a_silent_process_is_not_asked_again_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(THERE, monkeypatch=monkeypatch)
    asked = world.others.page(AT, "/")
    world.threads.advance(ANSWER_S)
    why = "does not answer: it takes more than 3 s"
    assert world.why_not(asked) == why
    fetched = len(world.fetched)
    assert world.why_not(world.others.page(AT, "/")) == why
    assert len(world.fetched) == fetched
    world.threads.advance(SILENT_S)
    world.answer = ClientError("it is gone")
    assert world.why_not(world.others.page(AT, "/")) == "does not answer: it is gone"
    assert len(world.fetched) == fetched + 1


def test_the_others_are_told_where_http_listens() -> None:
    world = World(THERE)
    assert world.others.our_http() is None
    world.others.http_opened(Endpoint("0.0.0.0", 8080))
    assert world.others.our_http() == Endpoint("10.0.0.1", 8080)
    assert world.shards.told == 1
    world.others.http_opened(Endpoint("0.0.0.0", 8080))
    assert world.shards.told == 1
