"""The cost of durability itself: a plain append to a preallocated file, and fdatasync.

It is measured in the directory of each server, in that server's turn, so the ratio shows how much the disk
itself varies. What a synchronous request takes beyond this is the server's own.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.comparing import percentile
from benchmarks.generator import Load
from benchmarks.processor import Measured
from benchmarks.servers import Settings, Side

APPENDS = 500
WARM_UPS = 20


def disk(_: Side, directory: Path, __: Settings, load: Load) -> Measured:
    """Appends of `append_bytes`, each with a sync of its own."""
    directory.mkdir(parents=True, exist_ok=True)
    data = os.urandom(load["append_bytes"])
    path = directory / "plain"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        os.posix_fallocate(descriptor, 0, len(data) * (WARM_UPS + APPENDS))
        os.fsync(descriptor)
        took_ms = [_append_ms(descriptor, data) for _ in range(WARM_UPS + APPENDS)][WARM_UPS:]
    finally:
        os.close(descriptor)
        path.unlink()
    return Measured({"p50 ms": percentile(took_ms, 50), "p99 ms": percentile(took_ms, 99)})


def _append_ms(descriptor: int, data: bytes) -> float:
    began = time.perf_counter()
    os.write(descriptor, data)
    os.fdatasync(descriptor)
    return (time.perf_counter() - began) * 1e3
