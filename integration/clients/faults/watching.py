"""One run of a consumer that meets a fault: what its application sees, and when its records come."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from integration.clients.matrix.driver import ClientError, Driver
from kshim.faults.named import Kind, names
from kshim.testing import Fault, Kshim
from schemas.api_key import ApiKey

PAUSE_S = 0.05
"""Between two records of the flow."""
TAKE_MS = 100
SESSION_TIMEOUT_MS = 4_000
REQUEST_TIMEOUT_MS = 2_000
SETTLED_S = 20.0
STOPS_S = 12.0
"""A consumer that has given no record for so long after a fault does not go on."""

STOPS, JOINS_AGAIN, SUCCEEDS = "gives no more records", "joins again", "the commit succeeds"


def fails(error: str) -> str:
    return f"the commit fails: {error}"


def gets(error: str) -> str:
    return f"the application gets {error}"


@dataclass
class Seen:
    """An application's observations from the moment of the fault on."""

    goes_on: bool = False
    joins_again: bool = False
    has_some_twice: bool = False
    late_s: float = 0.0
    """The longest time from the production of a record to its first arrival."""
    commit: str = ""
    """What became of the commit that met the fault."""
    errors: list[str] = field(default_factory=list)
    """The errors that polling raised, by the client's names for them."""

    def said(self) -> set[str]:
        """The observations, in a test's words."""
        parts = {gets(error) for error in self.errors}
        parts |= {self.commit} if self.commit else set()
        parts |= {JOINS_AGAIN} if self.joins_again else set()
        return parts if self.goes_on else parts | {STOPS}


class Flow:
    """Produces records, whose value is the time, for a `with` block."""

    def __init__(self, kshim: Kshim, topic: str) -> None:
        self._kshim, self._topic = kshim, topic
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(PAUSE_S):
            self._kshim.produce(self._topic, [str(time.monotonic())])


class Application:
    """A consumer "c" of a driver, and what has come of it."""

    def __init__(self, driver: Driver, topic: str, group: str, options: Mapping[str, Any]) -> None:
        self._driver = driver
        self._options = {
            "topics": [topic],
            "group": group,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
            **options,
        }
        self._offsets: set[int] = set()
        self._since_s = 0.0
        self._last_produced_s = 0.0
        self.seen = Seen()

    def open(self) -> None:
        self._since_s = time.monotonic()
        self._driver.open(name="c", **self._options)

    def begin(self) -> None:
        """From now on it counts what is seen."""
        self._driver.events(name="c")
        self._since_s, self.seen = time.monotonic(), Seen()

    def commit(self) -> None:
        try:
            self._driver.commit(name="c")
            self.seen.commit = SUCCEEDS
        except ClientError as error:
            self.seen.commit = fails(name_of(error))

    def take(self) -> None:
        """Take what has come."""
        try:
            records = self._driver.take(name="c", count=1000, timeout_ms=TAKE_MS)
        except ClientError as error:
            if name_of(error) not in self.seen.errors:
                self.seen.errors.append(name_of(error))
            return
        now_s = time.monotonic()
        for record in records:
            produced_s = float(record["value"])
            if record["offset"] in self._offsets:
                self.seen.has_some_twice = True
            elif produced_s >= self._since_s:
                self.seen.late_s = max(self.seen.late_s, now_s - produced_s)
            self._offsets.add(record["offset"])
            self._last_produced_s = max(self._last_produced_s, produced_s)

    def take_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Go on until the condition is true; return whether it became so in time."""
        end_s = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > end_s:
                return False
            self.take()
        return True

    def goes_on(self, timeout_s: float) -> bool:
        """True if a record that is produced now arrives."""
        from_s = time.monotonic()
        return self.take_until(lambda: self._last_produced_s > from_s, timeout_s)

    def lost(self) -> set[int]:
        """The offsets that were passed over."""
        there = self._offsets
        return set(range(min(there), max(there) + 1)) - there if there else set()

    def end(self) -> None:
        """Note whether the consumer has joined again, and close it."""
        self.seen.joins_again = any(kind == "assigned" for kind, _ in self._driver.events(name="c"))
        try:
            self._driver.close(name="c")
        except ClientError as error:
            self.seen.errors.append(name_of(error))


def name_of(error: ClientError) -> str:
    """Kafka's name of the error, if the client has put it into the text, else its own class."""
    code = re.search(r"KafkaError\{(?:FATAL,)?code=(\w+)", str(error))
    return code[1].lstrip("_") if code else error.name


class DidNotBegin(Exception):
    """No record came before there was a fault."""


def watch(
    kshim: Kshim,
    driver: Driver,
    when: str,
    api: str,
    fault: Mapping[str, Any],
    options: Mapping[str, Any],
) -> tuple[Seen, set[int]]:
    """Run a consumer that meets a fault; return what it saw, and the offsets that were passed over.

    when: "open" if the fault is there before the consumer; "commit" if the consumer commits when the fault is
    there; "poll" if it does nothing but poll. Raises DidNotBegin.
    """
    topic, group = kshim.topic(), kshim.group()
    only = {"group": group} if names(_key(api), Kind.GROUP) else {"topic": topic}
    application = Application(driver, topic, group, options)
    with Flow(kshim, topic):
        if when != "open":
            application.open()
            if not application.goes_on(SETTLED_S):
                raise DidNotBegin(str(application.seen))
            application.commit()
            assert application.seen.commit == SUCCEEDS, application.seen
            application.begin()
        with kshim.fault(api, **fault, **only) as struck:
            if when == "open":
                application.open()
            if when == "commit":
                application.goes_on(SETTLED_S)  # else there is nothing to commit
                application.commit()
            lasts_s = fault.get("for_ms", 0) / 1000
            assert application.take_until(lambda: _is_used_up(struck, fault), SETTLED_S), "it did not strike"
            application.take_until(lambda: False, lasts_s)
            application.seen.goes_on = application.goes_on(STOPS_S)
    for _ in range(2):  # an error is told when no record is left
        application.take()
    application.end()
    if when == "open":
        application.seen.joins_again = False  # it has joined
    kshim.delete_topics(topic)
    return application.seen, application.lost()


def _is_used_up(fault: Fault, given: Mapping[str, Any]) -> bool:
    return fault.struck() >= (given["times"] or 1)


def _key(api: str) -> ApiKey:
    return next(key for key in ApiKey if key.title == api)
