"""The clock that is passed to every part of the server that needs one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Clock(Protocol):
    """The part of Twisted's IReactorTime that kshim uses: the reactor, or in tests
    `twisted.internet.task.Clock`.
    """

    def seconds(self) -> float: ...
    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> Any: ...
