"""One reader of bytes from outside, what it may raise, and what must hold of whatever it returns."""

from __future__ import annotations

import re
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

MAX_INPUT_BYTES = 1 << 16
MAX_SECONDS = 1.0
"""For an input of at most MAX_INPUT_BYTES."""
MAX_MEMORY_PER_BYTE = 600
FREE_MEMORY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Target:
    """A row of the table.

    read: the code under test, alone, because its time and memory are measured. check: takes the input and
    what `read` returned, None if it refused; everything that it raises is a finding.
    """

    name: str
    read: Callable[[bytes], Any]
    refusals: tuple[type[Exception], ...]
    """The documented exceptions of `read`."""
    check: Callable[[bytes, Any], None]
    seeds: Callable[[Random], Iterable[bytes]]
    """Valid inputs, with which a search begins."""
    words: Sequence[bytes] = ()
    """What random bytes would hardly hit upon."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An input with which something went wrong."""

    target: str
    data: bytes
    place: str
    """Findings of the same place count as one."""
    report: str


@dataclass(frozen=True, slots=True)
class Outcome:
    shape: str
    """Inputs of one shape went roughly the same way."""
    finding: Finding | None = None


def examine(target: Target, data: bytes, max_seconds: float = MAX_SECONDS) -> Outcome:
    """Read one input, and check what came of it."""
    started = time.thread_time()
    try:
        try:
            value, shape = target.read(data), f"read {len(data).bit_length()} "
        except target.refusals as refused:
            value, shape = None, _shape(refused)
        seconds = time.thread_time() - started
        if value is not None:
            shape += _kind(value)
        target.check(data, value)
    except Exception as error:
        return Outcome("failed", _finding(target, data, error))
    if seconds > max_seconds:
        report = f"{len(data)} bytes took {seconds:.2f} s"
        return Outcome("slow", Finding(target.name, data, f"slow, {shape}", report))
    return Outcome(shape)


def examine_memory(target: Target, data: bytes) -> Finding | None:
    """A finding if the input takes far more memory than it has bytes."""
    tracemalloc.start()
    try:
        target.read(data)
    except target.refusals:
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    if most <= FREE_MEMORY_BYTES + MAX_MEMORY_PER_BYTE * len(data):
        return None
    return Finding(target.name, data, "memory", f"{len(data)} bytes took {most:,} bytes of memory")


def _kind(value: Any) -> str:
    parts = value if isinstance(value, tuple) and len(value) < 8 else (value,)
    return " ".join(type(part).__name__ for part in parts)


def _shape(refused: Exception) -> str:
    """The exception without numbers and quoted text."""
    return f"{type(refused).__name__} " + re.sub(r"-?\d+|'.*'|=.*", "", str(refused)[:200], flags=re.DOTALL)


def _finding(target: Target, data: bytes, error: Exception) -> Finding:
    frames = traceback.extract_tb(error.__traceback__)
    inner = frames[-1]
    place = f"{type(error).__name__} in {inner.filename.rpartition('/')[2]}, {inner.name}, {inner.line}"
    return Finding(target.name, data, place, "".join(traceback.format_exception(error)))
