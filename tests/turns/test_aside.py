"""Work aside: each client gets its share, and what is long holds nothing that is short."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kshim.configs.endpoint import Endpoint
from kshim.turns.aside import AsideThreads, FairQueue, Job

PATIENCE_S = 30


class Reactor:
    """Calls what a thread wants called, at once, and says when."""

    def __init__(self) -> None:
        self.called = threading.Semaphore(0)

    def callFromThread(self, function: Callable[..., Any], *arguments: Any) -> None:  # noqa: N802
        function(*arguments)
        self.called.release()


@pytest.fixture
def reactor() -> Reactor:
    return Reactor()


@pytest.fixture
def aside(reactor: Reactor) -> Iterator[AsideThreads]:
    threads = AsideThreads(reactor)  # type: ignore[arg-type]  # has what is used of it
    yield threads
    threads.stop()


def taken(*clients: str) -> list[str]:
    """The order in which jobs of these clients are done; each is named "address:port"."""
    queue = FairQueue()
    for number, client in enumerate(clients):
        host, port = client.split(":")
        queue.put(Endpoint(host, int(port)), Job(f"{client} {number}".__str__, Deferred()))
    queue.end()
    jobs = iter(queue.take, None)
    return [job.function() for job in jobs]


def test_a_connection_s_jobs_are_done_in_their_order() -> None:
    assert taken("a:1", "a:1", "a:1") == ["a:1 0", "a:1 1", "a:1 2"]


def test_addresses_take_turns() -> None:
    assert taken("a:1", "a:1", "a:1", "b:1") == ["a:1 0", "b:1 3", "a:1 1", "a:1 2"]


def test_many_connections_of_an_address_have_one_share() -> None:
    assert taken("a:1", "a:2", "a:3", "b:1", "b:1") == ["a:1 0", "b:1 3", "a:2 1", "b:1 4", "a:3 2"]


def test_connections_of_an_address_take_turns() -> None:
    assert taken("a:1", "a:1", "a:2") == ["a:1 0", "a:2 2", "a:1 1"]


def test_what_is_long_holds_nothing_that_is_short(reactor: Reactor, aside: AsideThreads) -> None:
    goes_on = threading.Event()
    seen: list[object] = []
    aside.run_long(lambda: goes_on.wait(PATIENCE_S)).addCallback(seen.append)
    aside.run(lambda: "short").addCallback(seen.append)
    assert reactor.called.acquire(timeout=PATIENCE_S)
    assert seen == ["short"]
    goes_on.set()
    assert reactor.called.acquire(timeout=PATIENCE_S)
    assert seen == ["short", True]


def test_what_a_function_raises_fails_its_deferred_alone(reactor: Reactor, aside: AsideThreads) -> None:
    failed: list[object] = []
    seen: list[object] = []
    aside.run(lambda: 1 // 0).addErrback(lambda failure: failed.append(failure.type))
    aside.run(lambda: 1).addCallback(seen.append)
    for _ in range(2):
        assert reactor.called.acquire(timeout=PATIENCE_S)
    assert (failed, seen) == ([ZeroDivisionError], [1])
