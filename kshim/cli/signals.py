"""Stops the server at SIGINT and SIGTERM, and wakes the reactor for that.

Python calls a signal's handler between two steps of the main thread. If a signal comes just before the thread
begins to wait, or another thread receives it, the handler would run only when the reactor wakes up for
another reason. So the interpreter writes a byte for each signal to a pipe that the reactor reads.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kshim.storage.reactor import Reactor


class Wakening:
    """The end of the pipe that the reactor reads: a Twisted IReadDescriptor."""

    def __init__(self) -> None:
        self._woken, wake = os.pipe()
        for end in (self._woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def fileno(self) -> int:
        return self._woken

    def doRead(self) -> None:  # noqa: N802
        with suppress(BlockingIOError):
            os.read(self._woken, 4096)

    def connectionLost(self, reason: object) -> None:
        """Do nothing: the process ends."""

    def logPrefix(self) -> str:  # noqa: N802
        return "signals"


def stop_at_signals(reactor: Reactor, stop: Callable[[], None]) -> None:
    """Call `stop` in the reactor at SIGINT and SIGTERM."""
    # Twisted's own handlers would log, at a second Ctrl-C, that the reactor is not running.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: reactor.callFromThread(stop))
    reactor.addReader(Wakening())
