"""Faults of a test: how to describe one, and how to count what it has struck and remove it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict

from kshim.control.client import ControlError
from kshim.testing.loops import in_thread

if TYPE_CHECKING:
    from kshim.control.faults import ListedFault

__all__ = ["AsyncFault", "Fault", "Given"]


class Given(TypedDict, total=False):
    """One action, and conditions for the requests it strikes. A condition that is left out is always true."""

    error: str
    """Kafka's name of the error."""
    delay_ms: int
    drop: Literal[True]
    close: Literal["before", "after"]
    stall_ms: int
    bytes_per_s: int

    client_id: str
    not_client_id: str
    group: str
    topic: str
    member: str
    nth: int
    """The first request to be struck, counted from 1 among those that fit."""
    times: int
    once: bool
    probability: float
    """The share of fitting requests that are struck: above 0, up to 1."""
    seed: int
    """Makes `probability` repeatable: the same seed strikes the same requests."""
    for_ms: int


class Fault:
    """A fault in force. As a context manager, it is removed at the end of the block."""

    def __init__(self, ask: Callable[..., Any], number: int) -> None:
        """ask: sends the server a command, and returns the result."""
        self._ask = ask
        self._number = number

    def struck(self) -> int:
        """How many requests the fault has struck so far. Raises ControlError if it was removed."""
        return self._described()["struck"]

    def matched(self) -> int:
        """How many requests fitted the conditions, struck or not. Raises ControlError if it was removed."""
        return self._described()["matched"]

    def remove(self) -> None:
        """Remove the fault: it strikes no further requests. Raises ControlError if it was removed already."""
        self._ask("remove-fault", self._number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        with suppress(ControlError):  # `reset` has removed it, or the server was stopped
            self.remove()

    def _described(self) -> ListedFault:
        found: Sequence[ListedFault] = self._ask("list-faults")
        for each in found:
            if each["number"] == self._number:
                return each
        raise ControlError(f"fault {self._number} is removed")


class AsyncFault:
    """A `Fault` with coroutines."""

    def __init__(self, fault: Fault) -> None:
        self.sync = fault

    async def struck(self) -> int:
        """How many requests the fault has struck so far. Raises ControlError if it was removed."""
        return await in_thread(self.sync.struck)

    async def matched(self) -> int:
        """How many requests fitted the conditions, struck or not. Raises ControlError if it was removed."""
        return await in_thread(self.sync.matched)

    async def remove(self) -> None:
        """Remove the fault: it strikes no further requests. Raises ControlError if it was removed already."""
        await in_thread(self.sync.remove)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await in_thread(self.sync.__exit__, None, None, None)
