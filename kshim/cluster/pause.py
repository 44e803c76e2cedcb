"""The pauses in which a long change serves other clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

Pause = Callable[[int], Awaitable[None]]
"""Called with the estimated cost of a step, in microseconds. It may serve other clients before it returns."""


async def no_pause(cost_us: int) -> None:
    """A Pause that returns at once."""
