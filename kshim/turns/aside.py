"""Work that takes long is done aside: on threads of its own, while the reactor's thread answers others.

Python runs one thread at a time and lets the other go on after SWITCH_S, so the work costs others a part of
their speed, but no wait. A function that is done aside may use nothing that the reactor's thread changes.

Each client gets the same share: the addresses take turns, and so do the connections of an address. What one
connection has done aside is done in its order. So a client waits for at most one function of each other
address. What may take a second goes to a thread of its own, where nothing short has to wait for it.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.configs.endpoint import NO_ADDRESS, Endpoint

if TYPE_CHECKING:
    from kshim.storage.reactor import FromThreads


SWITCH_S = 0.001
"""Python's default of 5 ms would delay each of the several system calls of a request by as much."""

OURS: Final = NO_ADDRESS
"""Stands for the client in work of the server's own."""

T = TypeVar("T")


class Aside(Protocol):
    """Does what takes long for the reactor's thread."""

    def run(self, function: Callable[[], T], client: Endpoint = OURS) -> Deferred[T]:
        """Call `function()` aside. Fires with what it returns; errbacks with what it raises.

        client: the address and port of the client for which it is done.
        """
        ...

    def run_long(self, function: Callable[[], T], client: Endpoint = OURS) -> Deferred[T]:
        """Like `run`, for what may take a second."""
        ...


class Job(NamedTuple):
    """A function that waits to be called."""

    function: Callable[[], object]
    done: Deferred[Any]


class FairQueue:
    """Jobs of clients, in turn. Both threads use it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: dict[str, dict[int, deque[Job]]] = {}
        """By address and port. The first address is the next one, and its first port."""
        self._is_ending = False

    def put(self, client: Endpoint, job: Job) -> None:
        """Queue a job behind the client's others."""
        with self._changed:
            self._jobs.setdefault(client.host, {}).setdefault(client.port, deque()).append(job)
            self._changed.notify()

    def end(self) -> None:
        """Hand out what is queued, and nothing more."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()

    def take(self) -> Job | None:
        """Wait for the next job; None at the end."""
        with self._changed:
            while not self._jobs:
                if self._is_ending:
                    return None
                self._changed.wait()
            host = next(iter(self._jobs))
            ports = self._jobs.pop(host)
            port = next(iter(ports))
            jobs = ports.pop(port)
            job = jobs.popleft()
            if jobs:
                ports[port] = jobs
            if ports:
                self._jobs[host] = ports
            return job


class _Lane:
    """One thread and its queue; the thread begins with the first function."""

    def __init__(self, reactor: FromThreads, name: str) -> None:
        self._reactor = reactor
        self._name = name
        self._queue = FairQueue()
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[[], T], client: Endpoint) -> Deferred[T]:
        if self._thread is None:
            sys.setswitchinterval(SWITCH_S)
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        done: Deferred[T] = Deferred()
        self._queue.put(client, Job(function, done))
        return done

    def stop(self) -> None:
        self._queue.end()

    def _run(self) -> None:
        # Signals are for the reactor's thread.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while (job := self._queue.take()) is not None:
            function, done = job
            result: Any
            try:
                result = function()
            except Exception:
                result = Failure()
            self._reactor.callFromThread(done.callback, result)
            del job, function, done, result  # else they would live until the next job comes


class AsideThreads:
    """Implements `Aside`."""

    def __init__(self, reactor: FromThreads) -> None:
        self._short = _Lane(reactor, "kshim-aside")
        self._long = _Lane(reactor, "kshim-long")

    def run(self, function: Callable[[], T], client: Endpoint = OURS) -> Deferred[T]:
        return self._short.run(function, client)

    def run_long(self, function: Callable[[], T], client: Endpoint = OURS) -> Deferred[T]:
        return self._long.run(function, client)

    def stop(self) -> None:
        """End the threads once their queued jobs are done. The results of those jobs are dropped."""
        self._short.stop()
        self._long.stop()
