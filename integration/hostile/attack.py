"""The parts of an attack: volleys of frames, and the bounds that the server has to keep meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kshim.testing.wire import Wire

MB = 1_000_000
SENT_FACTOR = 4
"""Memory that a request may take, as a multiple of its bytes: as a frame, decoded, and with its results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volley:
    """Frames that go to several connections, which are closed at the end."""

    label: str
    frames: Sequence[bytes] = ()
    connections: int = 1
    in_flight: int = 1
    """How many frames a connection sends before it reads an answer."""
    reads: bool = True
    """False to read no answer."""
    repeat_s: float = 0
    """How long to go on, beginning again with the first frame after the last; 0 sends the frames once."""
    byte_interval_s: float = 0
    """The pause between two bytes, which are sent one by one; 0 sends whole frames."""
    speaks_http: bool = False
    """True if the frames are HTTP requests, each of which ends its connection."""
    hold_s: float = 0
    """How long the connections stay open after the last frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds that the server has to keep."""

    wait_ms: float = 100
    """The longest wait of the victim for an answer. Beside other load, only the server's processor time
    counts.
    """
    peak_bytes: int = 250 * MB
    """Most memory above the idle server's, in addition to SENT_FACTOR times the bytes that were sent."""
    kept_bytes: int = 64 * MB
    """Most memory above the idle server's after the attacker is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack. It gets a new server."""

    name: str
    what: str
    """A line that says what the attack does."""
    arm: Callable[[Wire], Sequence[Volley]]
    """Prepares the server, for example by creating topics, and returns the volleys."""
    listeners: Sequence[str] = ()
    """The names of the server's listeners, if there are several. The last one is attacked."""
    options: Sequence[str] = ()
    """The server's command-line options."""
    bounds: Bounds = Bounds()
    tls: bool = False
    """True to attack a listener with TLS. The victim uses the plain one."""
    asks_wide: bool = False
    """True if the victim also sends requests so large that the server reads and writes them aside."""
    quick: bool = False
    """True if the attack takes only a few seconds, on a server that keeps the bounds."""
