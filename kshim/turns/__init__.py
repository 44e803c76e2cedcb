"""Turns of the one thread: what is answered later, in slices, or aside, and how much memory it may hold."""

from kshim.turns.turn import Signal, Turn

__all__ = ["Signal", "Turn"]
