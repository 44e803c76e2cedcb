"""A request's turn on its connection, and the signal that ends a wait early."""

from __future__ import annotations

from collections.abc import Callable


class Signal:
    """An event that happens once. A watcher that is added after that is called at once."""

    __slots__ = ("_watchers", "fired")

    def __init__(self) -> None:
        self.fired = False
        self._watchers: list[Callable[[], object]] | None = None

    def watch(self, callback: Callable[[], object]) -> None:
        if self.fired:
            callback()
        elif self._watchers is None:
            self._watchers = [callback]
        else:
            self._watchers.append(callback)

    def fire(self) -> None:
        if self.fired:
            return
        self.fired = True
        watchers, self._watchers = self._watchers, None
        for callback in watchers or ():
            callback()


class Turn(Signal):
    """A request's turn on its connection. Fires when another request is behind it, or the connection is
    ending.
    """

    __slots__ = ("is_alone", "made", "throttle_ms")

    def __init__(self) -> None:
        super().__init__()
        self.is_alone = False
        """Whether the requests behind it are not begun before it is answered. Set it before returning."""
        self.throttle_ms = 0
        """How long to mute the connection once it is answered (KIP-219). Set it before that."""
        self.made: Callable[[object], None] | None = None
        """Called with a reply that comes later, or with the exception that comes instead."""
