"""Time, as all of the server is given it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Clock(Protocol):
    """What is used of Twisted's IReactorTime: the reactor, or `twisted.internet.task.Clock` in tests."""

    def seconds(self) -> float: ...
    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> Any: ...
