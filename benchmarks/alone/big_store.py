"""A store of gigabytes in a thousand partitions: killed, started again, half of it deleted; and how long
others wait.

A server listens before its log is read. So the time until it listens is shown, and the time until every
partition has answered a Fetch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.alone.big_topic import GIB, Client, Stream, own_bytes, phase, until_free
from benchmarks.servers import Side
from integration.support.server import Server

PARTITIONS = 500
TOPIC_BYTES = 5 * GIB
KEPT, DELETED = "kept", "deleted"
"""Half of the store each."""


def run(sides: Sequence[Side], directory: Path, *_: object) -> None:
    """kshim alone: the first side."""
    data_dir = directory / "data"
    server = Server(data_dir, ["--set", f"flush.policy={sides[0].flush}"]).start()
    try:
        fill(server)
        server.kill()
        restart(server)
        delete_half(server)
        server.stop()
    finally:
        if server.running:
            server.kill()
    left = sum(file.stat().st_size for file in data_dir.rglob("*") if file.is_file())
    print(f"{'all files':34} {left / GIB:7.2f} GiB")


def fill(server: Server) -> None:
    client = Client(server.bootstrap)
    client.create("stream")
    stream = Stream(server.bootstrap)
    with phase("nothing else", server, stream):
        time.sleep(5)
    for name in (KEPT, DELETED):
        client.create(name, PARTITIONS, retention_ms="-1")
        with phase(f"produce {TOPIC_BYTES / GIB:.1f} GiB, {PARTITIONS} partitions", server, stream):
            client.fill(name, TOPIC_BYTES, PARTITIONS)
    stream.stop()


def restart(server: Server) -> None:
    started_at = time.perf_counter()
    server.restart()
    print(f"{'killed; listens after':34} {time.perf_counter() - started_at:7.2f} s")
    client = Client(server.bootstrap)
    for name in (KEPT, DELETED):
        for partition in range(PARTITIONS):
            assert client.read(name, 0, partition), f"{name}-{partition} is empty"
    print(
        f"{'    has served all partitions after':34} {time.perf_counter() - started_at:5.2f} s"
        f"{'':50} memory {own_bytes(server) / 1e6:4.0f} MB"
    )


def delete_half(server: Server) -> None:
    client, stream = Client(server.bootstrap), Stream(server.bootstrap)
    with phase("nothing else", server, stream):
        time.sleep(5)
    with phase("delete half of it", server, stream):
        client.delete(DELETED)
        until_free(server)
    with phase("nothing else", server, stream):
        time.sleep(5)
    stream.stop()
