"""Reads lines from a file descriptor as they come, and says when no more are waiting."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from typing import Final

CHUNK_BYTES: Final = 256 * 1024
MOST_LINE_BYTES: Final = 64 * 1024 * 1024
PAUSE_S: Final = 0.005
"""How long input may pause before the lines read so far are passed on. As linger.ms of Kafka's producers."""


class LineTooLong(ValueError):
    """A line has more than MOST_LINE_BYTES. str() says so."""


def input_lines(descriptor: int) -> Iterator[bytes | None]:
    """Yield each line without its end; None when no input has come for PAUSE_S. Raises LineTooLong."""
    begun: list[bytes] = []
    begun_bytes = number = 0
    is_told = True
    while True:
        if not is_told and not _has_input(descriptor):
            is_told = True
            yield None
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            break
        is_told = False
        first, *rest = chunk.split(b"\n")
        begun.append(first)
        begun_bytes += len(first)
        for following in rest:
            number += 1
            yield b"".join(begun)
            begun, begun_bytes = [following], len(following)
        if begun_bytes > MOST_LINE_BYTES:
            raise LineTooLong(f"line {number + 1} has more than {MOST_LINE_BYTES} bytes")
    if begun_bytes:
        yield b"".join(begun)


def _has_input(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], PAUSE_S)[0])
