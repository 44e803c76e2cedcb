"""The parts of a server that do not depend on its backend."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from kshim.callers.once import Once
from kshim.control.clock import SteeredClock
from kshim.coordination.loading import Loader
from kshim.recorder.recorder import Recorder
from kshim.turns.aside import AsideThreads
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread

if TYPE_CHECKING:
    from kshim.configs.config import Config
    from kshim.storage.reactor import Reactor


class Parts:
    """A process has one of each."""

    def __init__(self, config: Config, reactor: Reactor) -> None:
        """reactor: accepts the connections, and is the clock until that is steered."""
        self.config = config
        self.reactor = reactor
        self.clock = SteeredClock(reactor)
        """The time of records, groups and transactions."""
        self.loader = Loader(reactor)
        self.aside = AsideThreads(reactor)
        self.rounds = Rounds(reactor)
        self.unread = Unread(reactor, self.rounds)
        self.once = Once(reactor)
        self.recorder = Recorder(self.now_ms, most_bytes=config.group_rebalances_max_bytes)
        self.stops = AsyncExitStack()
        """Stops all that was started, the last first. Whoever starts something adds its stop."""

    def now_ms(self) -> int:
        """The time by `clock`, in milliseconds since 1970."""
        return int(self.clock.seconds() * 1000)
