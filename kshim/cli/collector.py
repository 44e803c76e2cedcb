"""Tunes Python's cyclic garbage collector for a server: long-lived objects are not examined again and again.

A full collection holds the one thread; with the objects of 300,000 partitions, for 100 ms. The objects that
are alive after a long collection are exempt from later ones (gc.freeze), so the next one is short again. An
exempt object is still freed with its last reference; only a cycle of exempt objects would stay.
"""

from __future__ import annotations

import gc
import time

YOUNG_OBJECTS, YOUNGER_PASSES, FULL_PASSES = 10_000, 10, 3
"""Thresholds of the collector. Requests under way are thousands of objects, which are soon freed without it;
a full collection comes after at most 300,000 more objects.
"""
LONG_S = 0.02


def defer() -> None:
    """Switch the collector off during the start, when nearly all new objects stay."""
    gc.disable()


def begin() -> None:
    """Switch the collector on, for objects made from now on."""
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
