"""The cost of connections that stop, or slow down, in the middle of a large request.

Memory is the growth of the resident set.
"""

from __future__ import annotations

import time

from benchmarks.generator import Load
from benchmarks.loads.batches import Producer
from benchmarks.processor import Measured, Window, memory_mib
from benchmarks.raw import Connection
from benchmarks.servers import Target
from schemas.records.batch import Record

BYTES = 8_000_000
"""Of the record in the request."""
SETTLED_S = 1.0
"""When nothing more was taken for so long, nothing will be."""


def halves(target: Target, load: Load, _: float) -> Measured:
    """So many `connections`, each of which has sent half of a request, as far as it is taken."""
    topic = Connection(target.bootstrap).new_topic(1)
    frame = next(
        Producer(target.bootstrap, topic, 0, idempotent=False).frames([Record(0, 0, b"", bytes(BYTES))])
    )
    senders = [Connection(target.bootstrap).greet() for _ in range(load["connections"])]
    before_mib = memory_mib(target.pid, "VmRSS")
    left = dict.fromkeys(senders, memoryview(frame)[: len(frame) // 2])
    moved_s = 0.0
    with Window(target.pid) as window:
        for sender in senders:
            sender.setblocking(False)
        while window.so_far_s - moved_s < SETTLED_S:
            for sender, data in left.items():
                if sent := _sent(sender, data):
                    left[sender], moved_s = data[sent:], window.so_far_s
            time.sleep(0.001)
    more_mib = memory_mib(target.pid, "VmRSS") - before_mib
    for sender in senders:
        sender.close()
    return window.measured(0, {"KiB a connection": more_mib * 1024 / len(senders)})


def _sent(sender: Connection, data: memoryview) -> int:
    """The number of bytes that the system takes now."""
    try:
        return sender.send(data) if data else 0
    except BlockingIOError:
        return 0
