"""Helpers for tests of the store on disk: batches, the log's contents, a writer that waits or fails."""

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from kshim.storage.embedded import EmbeddedStore
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


def hold_writer(
    store: EmbeddedStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """Hold the writer before its next transaction: writes are queued until the returned function is
    called."""
    arrived, released = Event(), Event()
    write = Environment.write

    def held(self: Environment, *args: Any, **options: Any) -> None:
        arrived.set()
        assert released.wait(PATIENCE_S)
        write(self, *args, **options)

    monkeypatch.setattr(Environment, "write", held)
    put = store.metadata.put({b"held": b""})
    assert arrived.wait(PATIENCE_S)

    def release() -> None:
        released.set()
        reactor.result(put)

    return release


def fail_writes(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
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
