"""Work that takes long is done aside: on a thread of its own, while the reactor's thread answers others.

Python runs one thread at a time and lets the other go on after SWITCH_S, so the work costs others a part of
their speed, but no wait. A function that is done aside may use nothing that the reactor's thread changes.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.python.failure import Failure

SWITCH_S = 0.001
"""Python's default of 5 ms would delay each of the several system calls of a request by as much."""

T = TypeVar("T")


class Aside(Protocol):
    """Does one thing after the other."""

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        """Call `function()` aside. Fires with what it returns; errbacks with what it raises."""
        ...


class AsideThread:
    """Implements `Aside`; the thread begins with the first function."""

    def __init__(self, reactor: IReactorFromThreads) -> None:
        self._reactor = reactor
        self._queue: SimpleQueue[tuple[Callable[[], Any], Deferred[Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        if self._thread is None:
            sys.setswitchinterval(SWITCH_S)
            self._thread = threading.Thread(target=self._run, name="kshim-aside", daemon=True)
            self._thread.start()
        done: Deferred[T] = Deferred()
        self._queue.put((function, done))
        return done

    def stop(self) -> None:
        """End the thread after what it is doing. What is queued is done too, but nobody is told."""
        self._queue.put(None)

    def _run(self) -> None:
        # Signals are for the reactor's thread.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while (job := self._queue.get()) is not None:
            function, done = job
            result: Any
            try:
                result = function()
            except Exception:
                result = Failure()
            self._reactor.callFromThread(done.callback, result)
            del job, function, done, result  # else they would live until the next job comes
