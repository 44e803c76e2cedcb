"""Python's cyclic garbage collector, in a server: what stays is not looked at again and again.

A full collection holds the one thread, 100 ms for the objects of 300,000 partitions. One that takes long
leaves what it found alive alone for good, so the next one is short again. Such objects still go with their
last reference; only a cycle of them would stay.
"""

from __future__ import annotations

import gc
import time

YOUNG_OBJECTS, YOUNGER_PASSES, FULL_PASSES = 10_000, 10, 3
"""Requests under way are thousands of objects that soon go by themselves; a full collection comes after at
most 300,000 more objects.
"""
LONG_S = 0.02


def defer() -> None:
    """Collect nothing during the start: nearly all that is made stays."""
    gc.disable()


def begin() -> None:
    """Collect what is made from now on."""
    began_s = 0.0

    def watch(phase: str, info: dict[str, int]) -> None:
        nonlocal began_s
        if info["generation"] < 2:
            return
        if phase == "start":
            began_s = time.perf_counter()
        elif time.perf_counter() - began_s > LONG_S:
            gc.freeze()

    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, YOUNGER_PASSES, FULL_PASSES)
    gc.callbacks.append(watch)
    gc.enable()
