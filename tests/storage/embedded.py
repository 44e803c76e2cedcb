"""Helpers for tests of the store on disk: batches, the log's contents, a writer that waits or fails."""

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kshim.storage.embedded import EmbeddedStore
from kshim.storage.embedded.ahead import Ahead
from kshim.storage.embedded.deletion import Deletion
from kshim.storage.embedded.environment import Environment
from schemas.records.batch import Record, batches, encode, records
from tests.storage.reactor import PATIENCE_S, Reactor

OpenStore = Callable[..., EmbeddedStore]


def batch_of(number: int, size: int = 100) -> bytes:
    return encode([Record(0, 1000 + number, b"%d" % number, bytes(size))])


def keys(store: EmbeddedStore, partition_no: int, max_bytes: int = 10**9) -> list[bytes | None]:
    """The keys of all records below the high watermark."""
    found: list[bytes | None] = []
    while data := store.log.read(partition_no, len(found), max_bytes):
        found += [record.key for batch in batches(data) for record in records(batch)]
    return found


def entries(store: EmbeddedStore) -> int:
    """The number of chunks."""
    with store._environment.read("log") as transaction:
        return transaction.stat(store._environment.log)["entries"]


def apply_all(store: EmbeddedStore, reactor: Reactor) -> None:
    """Wait until LMDB has all durable writes, and the reactor knows it."""
    assert store._writer is not None
    done: Deferred[None] = Deferred()
    store._writer.order(lambda: reactor.callFromThread(done.callback, None))
    reactor.result(done)


def await_recovery(store: EmbeddedStore, reactor: Reactor) -> None:
    """Wait until writes are accepted again."""
    assert store._writer is not None
    while store._writer.refusal(0) is not None:
        reactor.turn()


def hold_writer(
    store: EmbeddedStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """Hold the thread of the log before its next append: writes are queued until the returned function is
    called. The store has to sync, else it would append on this thread."""
    arrived, released = Event(), Event()
    append = Ahead.append

    def held(self: Ahead, writes: Any) -> None:
        arrived.set()
        assert released.wait(PATIENCE_S)
        append(self, writes)

    monkeypatch.setattr(Ahead, "append", held)
    put = store.metadata.put({b"held": b""})
    assert arrived.wait(PATIENCE_S)

    def release() -> None:
        released.set()
        reactor.result(put)

    return release


def fail_writes(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Make appends to the log fail."""

    def append(*args: Any) -> None:
        raise error

    monkeypatch.setattr(Ahead, "append", append)


def fail_transactions(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Make LMDB refuse changes."""

    def write(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(Environment, "write", write)


def when_deleted(store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Wait until no deleted partition takes up space; returns the number of steps that took."""
    done = Event()
    steps = []
    step = Deletion.step

    def counted(self: Deletion) -> None:
        step(self)
        steps.append(len(self.pending))
        if not self.pending:
            done.set()

    monkeypatch.setattr(Deletion, "step", counted)

    def wait() -> int:
        assert done.wait(PATIENCE_S)
        return len(steps)

    return wait
