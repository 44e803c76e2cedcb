"""What an attack is made of: volleys of frames, and the bounds that the server has to keep meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from integration.support.wire import Wire

MB = 1_000_000
SENT_FACTOR = 4
"""A request may take so many times its bytes: as a frame, decoded, and with what is made of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volley:
    """The same frames on some connections, which are closed at the end."""

    label: str
    frames: Sequence[bytes] = ()
    connections: int = 1
    in_flight: int = 1
    """How many frames a connection sends before it reads an answer."""
    reads: bool = True
    """Whether answers are read at all."""
    repeat_s: float = 0
    """Begin again with the first frame until that much time has passed."""
    byte_interval_s: float = 0
    """Send single bytes, and wait that long before the next one; 0 sends whole frames."""
    speaks_http: bool = False
    """Whether the frames are requests over HTTP, each of which ends its connection."""
    hold_s: float = 0
    """How long the connections stay open after the last frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the server has to keep."""

    wait_ms: float = 100
    """The longest that the victim may wait for an answer: processor time of the server, beside load."""
    peak_bytes: int = 250 * MB
    """The memory above that of the idle server, besides SENT_FACTOR times what was sent."""
    kept_bytes: int = 64 * MB
    """The memory above that of the idle server when the attacker is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack, on a server of its own."""

    name: str
    what: str
    """What it does, in one line."""
    arm: Callable[[Wire], Sequence[Volley]]
    """Makes what the attack needs on the server, such as topics, and returns the volleys."""
    listeners: Sequence[str] = ()
    """Names of the server's listeners, if there are several; it strikes at the last."""
    options: Sequence[str] = ()
    """Of the server."""
    bounds: Bounds = Bounds()
    tls: bool = False
    """Whether it strikes at a listener with TLS. The victim stays at the plain one."""
    asks_wide: bool = False
    """Whether the victim also asks for so much that the server reads and writes it aside."""
    quick: bool = False
    """Whether it takes a few seconds, on a server that keeps the bounds."""
