"""Shared parts of the drivers of Python's clients: the lines, and a thread that polls a consumer."""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

POLL_S = 0.05
CALL_S = 50


class Cannot(Exception):
    """The client has no such call."""


def serve(driver: object) -> None:
    """Answer the lines of stdin until it ends; the calls are the methods of `driver`."""
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_answer(driver, request.pop("do"), request)), flush=True)


def _answer(driver: object, do: str, arguments: dict[str, Any]) -> dict[str, Any]:
    method = getattr(driver, do, None)
    if method is None:
        return {"cannot": f"no {do}"}
    try:
        return {"is": method(**arguments)}
    except Cannot as error:
        return {"cannot": str(error)}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def data(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


class Polling:
    """A consumer on a thread of its own, which polls it and carries out calls in between.

    `poll()` returns records as the protocol has them. Calls of a paused application wait.
    """

    def __init__(self, make: Callable[[Polling], Any], poll: Callable[[Any], list[dict[str, Any]]]) -> None:
        self.seen: list[list[Any]] = []
        self._poll = poll
        self._records: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._calls: queue.SimpleQueue[tuple[Callable[[Any], Any], Future[Any]]] = queue.SimpleQueue()
        self._ends = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(make,), daemon=True)
        self._thread.start()

    def event(self, kind: str, partitions: list[list[Any]]) -> None:
        """Note an event of a rebalance listener, with its time in ms since 1970."""
        self.seen.append([kind, sorted(partitions), int(time.time() * 1000)])

    def events(self) -> list[list[Any]]:
        seen, self.seen = self.seen, []
        return seen

    def take(self, count: int, timeout_ms: int) -> list[dict[str, Any]]:
        """The records that came, at most `count`; waits for them. If none came, raises what the consumer has
        raised.
        """
        deadline = time.monotonic() + timeout_ms / 1000
        found: list[dict[str, Any]] = []
        while len(found) < count and (left_s := deadline - time.monotonic()) > 0:
            try:
                found.append(self._records.get(timeout=min(left_s, POLL_S)))
            except queue.Empty:
                if not found:
                    self._raise()
        return found

    def call(self, function: Callable[[Any], Any]) -> Any:
        """`function(consumer)`, on the consumer's thread. Raises what it raises."""
        self._raise()
        done: Future[Any] = Future()
        self._calls.put((function, done))
        return done.result(CALL_S)

    def stall(self, ms: int) -> None:
        """Do not poll for that long, from now on."""
        self._calls.put((lambda _: time.sleep(ms / 1000), Future()))

    def close(self, close: Callable[[Any], Any]) -> None:
        """Call `close(consumer)` and end the thread."""

        def last(consumer: Any) -> None:
            self._ends = True
            close(consumer)

        self.call(last)
        self._thread.join()

    def _raise(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self, make: Callable[[Polling], Any]) -> None:
        try:
            consumer = make(self)
        except Exception as error:
            self._failure = error
            return
        while not self._ends:
            self._carry_out(consumer)
            if self._ends:
                return
            try:
                for record in self._poll(consumer):
                    self._records.put(record)
            except Exception as error:
                self._failure = error
                time.sleep(POLL_S)  # an application that polls on after an error does not do so at once

    def _carry_out(self, consumer: Any) -> None:
        while not self._calls.empty():
            function, done = self._calls.get()
            try:
                done.set_result(function(consumer))
            except Exception as error:
                done.set_exception(error)
