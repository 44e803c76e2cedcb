"""A signal wakes the reactor, whichever thread receives it."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kshim.cli.signals import stop_at_signals

WAIT_S = 10


class FakeReactor:
    def __init__(self) -> None:
        self.readers: list[Any] = []
        self.calls: list[Any] = []

    def addReader(self, reader: Any) -> None:  # noqa: N802
        self.readers.append(reader)

    def callFromThread(self, function: Any) -> None:  # noqa: N802
        self.calls.append(function)


@pytest.fixture
def reactor() -> Iterator[FakeReactor]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    reactor = FakeReactor()
    yield reactor
    os.close(signal.set_wakeup_fd(-1))
    for number, handler in before.items():
        signal.signal(number, handler)
    os.close(reactor.readers[0].fileno())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_another_thread_receives(reactor: FakeReactor, number: signal.Signals) -> None:
    def stop() -> None: ...

    stop_at_signals(reactor, stop)
    (reader,) = reactor.readers
    waiting = threading.Event()
    received = threading.Thread(target=waiting.wait, args=(WAIT_S,))
    received.start()
    assert received.ident is not None
    signal.pthread_kill(received.ident, number)
    assert select.select([reader], [], [], WAIT_S)[0] == [reader]
    waiting.set()
    received.join()
    assert reactor.calls == [stop]
    reader.doRead()
    reader.doRead()
    assert select.select([reader], [], [], 0)[0] == []
