"""The parts and settings that the connections of one listener share, and the types of answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from kshim.callers import Client
from kshim.callers.once import Once
from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import SecurityProtocol
from kshim.network.beyond import Beyond, Near
from kshim.network.intake import Intake
from kshim.storage.clock import TimerClock
from kshim.turns import Turn
from kshim.turns.promise import Promise
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread
from schemas.pieces import Pieces

if TYPE_CHECKING:
    from kshim.network.gate import GateContext

Response = bytes | Pieces | None
Dispatch = Callable[[bytes | bytearray, Client, Turn], Response | Promise[Response]]
"""Takes a frame, its client, and its turn. Returns the response without its size, or None if the request has
none. Raises Refused, or the promise fails with it.
"""
B = TypeVar("B")
AnswerFunction: TypeAlias = Callable[[B, bytes | bytearray, Client, Turn], Response | Promise[Response]]
"""Answers a request to a broker; see `dispatch.answer`."""


class Measured(Protocol):
    """Makes a listener's dispatch function from an answering function and the broker it answers for."""

    def __call__(self, answer: AnswerFunction[B], broker: B, /) -> Dispatch: ...


@dataclass(slots=True, kw_only=True)
class Shared:
    """The parts and settings that the connections of one listener share."""

    answer: Dispatch
    """Replaced while there are faults."""
    clock: TimerClock
    rounds: Rounds
    unread: Unread
    intake: Intake
    once: Once
    max_request_bytes: int
    max_idle_ms: int = -1
    """How long a connection may be idle; -1 for ever."""
    listener_name: str = "PLAINTEXT"
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    advertised: Endpoint | None = None
    """The address that clients should use; None for the one at which they have connected."""
    gates: GateContext | None = None
    """Makes the gates that clients must pass first; None for a listener without SASL."""
    new_beyond: Callable[[Near], Beyond] | None = None
    """Makes the far side of a connection whose requests may go on; None at a local server."""
