"""The cost of idle connections: memory for each, and the wait of a Heartbeat beside them.

Memory is the growth of the resident set. A JVM that reuses pages of its heap grows by less.
"""

from __future__ import annotations

import time

from benchmarks.comparing import percentile
from benchmarks.generator import Load
from benchmarks.loads.requests import Member, heartbeat_of
from benchmarks.processor import Measured, Window, memory_mib
from benchmarks.raw import Connection
from benchmarks.servers import Target
from kshim.testing.wire import framed

WARM_UPS = 500


def connections(target: Target, load: Load, seconds: float) -> Measured:
    """So many `connections`, each of which has sent one ApiVersions request, as clients do."""
    member = Member(target.bootstrap)
    frame = framed(*heartbeat_of(member))
    for _ in range(WARM_UPS):
        beat_ms(member, frame)
    before_mib = memory_mib(target.pid, "VmRSS") if target.pid else None
    idle = [Connection(target.bootstrap).greet() for _ in range(load["connections"])]
    took_ms = []
    with Window(target.pid) as window:
        while window.so_far_s < seconds:
            took_ms.append(beat_ms(member, frame))
    figures = {}
    if before_mib is not None:
        more_mib = memory_mib(target.pid, "VmRSS") - before_mib
        figures["KiB a connection"] = more_mib * 1024 / len(idle)
    figures |= {"Heartbeat p50 ms": percentile(took_ms, 50), "Heartbeat p99 ms": percentile(took_ms, 99)}
    return window.measured(len(took_ms), figures)


def beat_ms(member: Member, frame: bytes) -> float:
    began = time.perf_counter()
    member.sendall(frame)
    member.frame()
    return (time.perf_counter() - began) * 1e3
