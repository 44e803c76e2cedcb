"""Programs with confluent-kafka that write to a topic: `python -m …museum.confluent_writing NAME`."""

from __future__ import annotations

import contextlib
import queue
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from integration.torture.museum.librdkafka import (
    Writer,
    behind,
    commit,
    commit_offsets,
    polled,
    subscribed,
    subscribed_at_offsets,
)
from integration.torture.museum.work import INSTANCE, TOPIC, end_at_sigterm, over

EVERY_S = 1.5
LATER_S = 0.5
END_S = 20


# ---- at least once


def written(**settings: Any) -> None:
    """Write, wait for the acknowledgements, commit."""
    reader, writer = subscribed(), Writer(**settings)
    while not over.is_set():
        messages = polled(reader)
        writer.write(messages)
        commit(reader, messages)
    reader.close()


def not_awaited() -> None:
    """Commit when records are sent, before they are acknowledged."""
    reader, writer = subscribed(), Writer(linger_ms=1500)
    while not over.is_set():
        messages = polled(reader)
        writer.send(messages)
        commit(reader, messages)
        writer.producer.poll(0)
    writer.producer.flush(END_S)
    reader.close()


# ---- nothing twice, as long as nothing crashes


def idempotent() -> None:
    written(enable_idempotence=True)


def not_idempotent() -> None:
    """A write whose answer is lost is written again."""
    written(enable_idempotence=False, acks="all")


class Uncommitted:
    """Offsets that are written and not committed."""

    def __init__(self) -> None:
        self.reader: Consumer | None = None
        self.offsets: dict[int, int] = {}
        self._committed_s = time.monotonic()

    def add(self, messages: Iterable[Any]) -> None:
        self.offsets |= {message.partition(): message.offset() + 1 for message in messages}

    def is_due(self) -> bool:
        return time.monotonic() - self._committed_s > EVERY_S

    def commit(self, *_: Any) -> None:
        """Commit all, and forget them."""
        offsets = [TopicPartition(TOPIC, partition, offset) for partition, offset in self.offsets.items()]
        assert self.reader is not None
        commit_offsets(self.reader, offsets)
        self.offsets.clear()
        self._committed_s = time.monotonic()


def _now_and_then(*, on_revoke: bool = False, on_assign: bool = False) -> None:
    """Write at once, commit now and then, and perhaps when partitions are revoked, or assigned."""
    writer, mine = Writer(enable_idempotence=True), Uncommitted()
    reader = mine.reader = subscribed()

    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        if on_assign:
            mine.commit()
        reader.begin(reader, partitions)

    def revoked(*_: object) -> None:
        reader.drop()
        if on_revoke:
            mine.commit()

    reader.subscribe([TOPIC], on_assign=assigned, on_revoke=revoked)
    while not over.is_set():
        messages = polled(reader, 10)
        writer.write(messages)
        mine.add(messages)
        if mine.is_due():
            mine.commit()
    mine.commit()
    reader.close()


def no_commit_on_revoke() -> None:
    """What was written since the last commit comes again after each rebalance."""
    _now_and_then()


def commit_on_assign() -> None:
    """The wrong callback: when partitions are assigned, others may have gone on from the old offsets."""
    _now_and_then(on_assign=True)


def commit_on_revoke() -> None:
    _now_and_then(on_revoke=True)


def commits_that_go_back() -> None:
    """Commit without waiting, and repeat what failed: an old offset overtakes a newer one."""
    failed: queue.SimpleQueue[tuple[float, list[TopicPartition]]] = queue.SimpleQueue()

    def committed(error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        if error is not None or any(each.error for each in partitions):
            again = [TopicPartition(each.topic, each.partition, each.offset) for each in partitions]
            failed.put((time.monotonic() + LATER_S, again))

    reader, writer = subscribed(on_commit=committed), Writer(enable_idempotence=True)
    while not over.is_set():
        messages = polled(reader, 10)
        writer.write(messages)
        _commit_later(reader, behind(messages))
        if not failed.empty():
            due_s, again = failed.get()
            if due_s > time.monotonic():
                failed.put((due_s, again))
            else:
                _commit_later(reader, again)
    reader.close()


def _commit_later(reader: Consumer, offsets: list[TopicPartition]) -> None:
    with contextlib.suppress(KafkaException):
        if offsets:
            reader.commit(offsets=offsets, asynchronous=True)


# ---- exactly once


def _transactions(
    end: Callable[[Consumer, Producer, list[Any]], None], isolation: str, transactional_id: str
) -> None:
    """Write each batch in a transaction, which `end` ends."""
    reader = subscribed_at_offsets(isolation_level=isolation)
    writer = Writer(transactional_id=transactional_id, transaction_timeout_ms=10_000)
    writer.producer.init_transactions(END_S)
    while not over.is_set():
        messages = polled(reader)
        if messages:
            _transaction(reader, writer, messages, end)
    reader.close()


def _transaction(
    reader: Consumer,
    writer: Writer,
    messages: list[Any],
    end: Callable[[Consumer, Producer, list[Any]], None],
) -> None:
    try:
        writer.producer.begin_transaction()
        writer.write(messages)
        end(reader, writer.producer, messages)
    except KafkaException as error:
        print("transaction failed:", error, file=sys.stderr)
        if error.args[0].fatal():
            raise  # it is fenced: the supervisor starts a new one
        writer.producer.abort_transaction(END_S)
        _rewind(reader, messages)


def _rewind(reader: Consumer, messages: Iterable[Any]) -> None:
    """Read these records again, from those partitions that are still assigned."""
    first: dict[int, int] = {}
    for message in messages:
        first.setdefault(message.partition(), message.offset())
    for partition, offset in first.items():
        with contextlib.suppress(KafkaException):
            reader.seek(TopicPartition(TOPIC, partition, offset))


def _inside(reader: Consumer, producer: Producer, messages: list[Any]) -> None:
    producer.send_offsets_to_transaction(behind(messages), reader.consumer_group_metadata(), END_S)
    producer.commit_transaction(END_S)


def _beside(reader: Consumer, producer: Producer, messages: list[Any]) -> None:
    producer.commit_transaction(END_S)
    commit(reader, messages)


def exactly_once() -> None:
    """Offsets in the transaction, and records read committed."""
    _transactions(_inside, "read_committed", f"torture-{INSTANCE}")


def offsets_beside() -> None:
    """The transaction is committed, then the offsets: who stands still between them fences nobody."""
    _transactions(_beside, "read_committed", f"torture-{INSTANCE}")


def read_uncommitted() -> None:
    """Processes records of transactions that were aborted."""
    _transactions(_inside, "read_uncommitted", f"torture-{INSTANCE}")


PROGRAMS: dict[str, Callable[[], None]] = {
    "written": written,
    "not-awaited": not_awaited,
    "idempotent": idempotent,
    "not-idempotent": not_idempotent,
    "no-commit-on-revoke": no_commit_on_revoke,
    "commit-on-assign": commit_on_assign,
    "commit-on-revoke": commit_on_revoke,
    "commits-that-go-back": commits_that_go_back,
    "exactly-once": exactly_once,
    "offsets-beside": offsets_beside,
    "read-uncommitted": read_uncommitted,
}

if __name__ == "__main__":
    end_at_sigterm()
    PROGRAMS[sys.argv[1]]()
