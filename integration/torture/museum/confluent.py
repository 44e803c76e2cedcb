"""Programs with confluent-kafka that report: `python -m integration.torture.museum.confluent NAME`."""

from __future__ import annotations

import contextlib
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import KafkaException

from integration.torture.museum.librdkafka import commit, polled, process, subscribed, subscribed_at_offsets
from integration.torture.museum.work import INSTANCE, TOPIC, end_at_sigterm, over, report

EVERY_S = 1.5


# ---- at least once


def mended(**settings: Any) -> None:
    """Process, then commit."""
    reader = subscribed(**settings)
    while not over.is_set():
        messages = polled(reader)
        for message in messages:
            process(message)
        commit(reader, messages)
    reader.close()


def commit_first() -> None:
    """Commit what was polled, then process it."""
    reader = subscribed()
    while not over.is_set():
        messages = polled(reader)
        commit(reader, messages)
        for message in messages:
            process(message)
    reader.close()


def auto_commit_and_pool() -> None:
    """Hand records to threads; the client commits what was polled, not what is processed."""
    reader = subscribed(enable_auto_commit=True, auto_commit_interval_ms=300)
    with ThreadPoolExecutor(1) as pool:
        while not over.is_set():
            for message in polled(reader):
                pool.submit(process, message)
        reader.close()


def pool_that_is_awaited() -> None:
    """Hand records to threads; commit when all of them are processed."""
    reader = subscribed()
    with ThreadPoolExecutor(2) as pool:
        while not over.is_set():
            messages = polled(reader)
            for done in [pool.submit(process, message) for message in messages]:
                done.result()
            commit(reader, messages)
        reader.close()


def only_in_memory() -> None:
    """Commit at once, and write the results now and then."""
    reader = subscribed()
    results = Results()
    while not over.is_set():
        messages = polled(reader)
        results.kept += messages
        commit(reader, messages)
        if results.are_due(EVERY_S):
            results.write()
    results.write()
    reader.close()


def written_before_commit() -> None:
    """Write the results now and then, and commit then; forget those of partitions that are revoked before
    that. Committed later, they would set the next owner's offset back.
    """
    reader = subscribed()
    results = Results()

    def revoked(*_: object) -> None:
        reader.drop()
        results.kept.clear()

    reader.subscribe([TOPIC], on_revoke=revoked)
    while not over.is_set():
        results.kept += polled(reader)
        if results.are_due(0.2):
            commit(reader, results.write())
    commit(reader, results.write())
    reader.close()


class Results:
    """Results that are not written yet."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self._written_s = time.monotonic()

    def are_due(self, every_s: float) -> bool:
        return time.monotonic() - self._written_s > every_s

    def write(self) -> list[Any]:
        """Report them, and return their records."""
        written, self.kept, self._written_s = self.kept, [], time.monotonic()
        for message in written:
            report(message.topic(), message.partition(), message.offset())
        return written


def latest() -> None:
    """Begin at the end: records from before the first commit are never read."""
    mended(auto_offset_reset="latest")


def new_static_id() -> None:
    """A group.instance.id of its own for each start: the old member keeps its partitions for a session."""
    mended(group_instance_id=str(uuid.uuid4()))


def kept_static_id() -> None:
    """The same group.instance.id after each start. A fenced member ends, and is started again."""
    mended(group_instance_id=INSTANCE)


def fenced_and_deaf() -> None:
    """Takes no notice of a fatal error, which comes once: the member gets nothing any more."""
    reader = subscribed(group_instance_id=INSTANCE)
    while not over.is_set():
        message = reader.poll(0.2)
        if message is not None and message.error() is None:
            process(message)
            with contextlib.suppress(KafkaException):
                reader.commit(message=message, asynchronous=False)
    reader.close()


# ---- in order


def pool_out_of_order() -> None:
    """Four threads take records as they come: those of a key overtake each other."""
    _with_shares(lambda messages: [[message] for message in messages])


def a_thread_for_each_partition() -> None:
    """The records of a partition are processed by one thread, one after the other."""
    _with_shares(lambda messages: list(_by_partition(messages).values()))


def _with_shares(divide: Callable[[list[Any]], list[list[Any]]]) -> None:
    """Process shares of each batch at the same time."""
    reader = subscribed()
    with ThreadPoolExecutor(4) as pool:
        while not over.is_set():
            messages = polled(reader)
            for done in [pool.submit(_process_all, share) for share in divide(messages)]:
                done.result()
            commit(reader, messages)
        reader.close()


def _process_all(messages: list[Any]) -> None:
    for message in messages:
        time.sleep(0.03 if message.offset() % 5 == 0 else 0)
        process(message)


def _by_partition(messages: list[Any]) -> dict[int, list[Any]]:
    shares: dict[int, list[Any]] = {}
    for message in messages:
        shares.setdefault(message.partition(), []).append(message)
    return shares


# ---- at most once


def at_most_once() -> None:
    """Commit first, and process only what is committed."""
    reader = subscribed_at_offsets()
    while not over.is_set():
        messages = polled(reader, 10)
        if commit(reader, messages):
            for message in messages:
                process(message)
    reader.close()


PROGRAMS: dict[str, Callable[[], None]] = {
    "mended": mended,
    "commit-first": commit_first,
    "auto-commit-and-pool": auto_commit_and_pool,
    "pool-that-is-awaited": pool_that_is_awaited,
    "only-in-memory": only_in_memory,
    "written-before-commit": written_before_commit,
    "latest": latest,
    "new-static-id": new_static_id,
    "kept-static-id": kept_static_id,
    "fenced-and-deaf": fenced_and_deaf,
    "pool-out-of-order": pool_out_of_order,
    "a-thread-for-each-partition": a_thread_for_each_partition,
    "at-most-once": at_most_once,
}

if __name__ == "__main__":
    end_at_sigterm()
    PROGRAMS[sys.argv[1]]()
