"""Topics of gigabytes: produce, restart, read anywhere, compact, expire, delete; and how long others wait.

A stream of small Produce requests, one after the other on its own connection, goes on in every phase. Its
latencies, compared with those of the phase "nothing else", show how long a client was held up. Memory is the
server's own, without the data file's pages in the system's cache.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.raw import Connection
from benchmarks.servers import Side
from integration.support.server import Server
from kshim.testing.wire import framed
from schemas.api_key import ApiKey
from schemas.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest
from schemas.messages.describe_log_dirs import DescribeLogDirsRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, encode
from schemas.registry import decode_response

GIB = 1024**3
TOPIC_BYTES = 2 * GIB
OPTIONS = ("--set", "log.retention.check.interval.ms=1000", "--set")
RECORDS, VALUE_BYTES, KEYS = 100, 1000, 50_000
UNDER_WAY = 8
READS = 500
READ_BYTES = 1024 * 1024
TOPIC_RESOURCE = 2
CALM_TICKS = 50
"""The processor time per second that counts as calm while the stream goes on."""


def batch(first_key: int) -> bytes:
    """100 records of 1 KB with the same timestamp, whose values do not compress."""
    value = random.randbytes(VALUE_BYTES)
    keys = (b"%d" % (number % KEYS) for number in range(first_key, first_key + RECORDS))
    return encode([Record(delta, 1_700_000_000_000, key, value) for delta, key in enumerate(keys)])


def produce_frame(topic: str, records: bytes, partition: int = 0) -> bytes:
    of_partition = PartitionProduceData(index=partition, records=records)
    data = TopicProduceData(name=topic, partition_data=(of_partition,))
    return framed(9, ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=(data,)))


class Stream:
    """Sends small Produce requests, one at a time, until it is stopped; `took_s` has the latencies of the
    current phase."""

    def __init__(self, bootstrap: str) -> None:
        self.took_s: list[float] = []
        self._connection = Connection(bootstrap)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        frame = produce_frame("stream", encode([Record(0, 1_700_000_000_000, b"k", bytes(100))]))
        while not self._stopping.wait(0.001):
            started_at = time.perf_counter()
            self._connection.sendall(frame)
            _, response = decode_response(ApiKey.PRODUCE, 9, self._connection.frame())
            assert response.responses[0].partition_responses[0].error_code == 0, response
            self.took_s.append(time.perf_counter() - started_at)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


@contextlib.contextmanager
def phase(name: str, server: Server, stream: Stream) -> Iterator[None]:
    stream.took_s.clear()
    started_at = time.perf_counter()
    yield
    seconds = time.perf_counter() - started_at
    took_ms = sorted(s * 1e3 for s in stream.took_s)
    p50, p99, worst = (took_ms[int(len(took_ms) * share)] for share in (0.5, 0.99, 0.99999))
    print(
        f"{name:34} {seconds:7.1f} s   Produce p50 {p50:6.2f} ms  p99 {p99:6.2f} ms  worst {worst:7.2f} ms   "
        f"memory {own_bytes(server) / 1e6:4.0f} MB",
        flush=True,
    )


def own_bytes(server: Server) -> int:
    """Resident memory, without pages mapped from files."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024


class Client:
    """Sends requests of an administrator, a producer and a consumer over one connection."""

    def __init__(self, bootstrap: str) -> None:
        self._connection = Connection(bootstrap)

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        items = tuple(CreatableTopicConfig(name=key.replace("_", "."), value=v) for key, v in configs.items())
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=items)
        self._connection.ask(5, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000))

    def configure(self, name: str, **configs: str) -> None:
        items = tuple(
            AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
            for key, value in configs.items()
        )
        resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configs=items)
        request = IncrementalAlterConfigsRequest(resources=(resource,))
        (answer,) = self._connection.ask(1, request).responses
        assert answer.error_code == 0, answer

    def delete(self, name: str) -> None:
        request = DeleteTopicsRequest(topic_names=(name,), timeout_ms=60_000)
        self._connection.ask(5, request)

    def size(self, name: str) -> int:
        """The bytes of a topic's records; 0 if there is no such topic."""
        described = self._connection.ask(4, DescribeLogDirsRequest(topics=None))
        topics = described.results[0].topics
        return sum(p.partition_size for topic in topics if topic.name == name for p in topic.partitions)

    def fill(self, name: str, size: int, partitions: int = 1) -> int:
        """Produce `size` bytes, to each partition in turn; returns how many records they have."""
        frames = [
            produce_frame(name, batch(key), number % partitions)
            for number, key in enumerate(range(0, KEYS, RECORDS))
        ]
        wanted = size // len(frames[0])
        for number in range(wanted + UNDER_WAY):
            if number < wanted:
                self._connection.sendall(frames[number % len(frames)])
            if number >= UNDER_WAY:
                self._connection.frame()
        return wanted * RECORDS

    def read(self, name: str, offset: int, partition: int = 0) -> int:
        """The number of bytes that a Fetch from this offset returns."""
        asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=READ_BYTES)
        topics = (FetchTopic(topic=name, partitions=(asked,)),)
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=READ_BYTES, topics=topics)
        answer: Any = self._connection.ask(11, request)
        return len(answer.responses[0].partitions[0].records)


def until(condition: Callable[[], bool], timeout_s: float = 900) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "this takes too long"
        time.sleep(0.25)


def until_steady(size: Callable[[], int], below: int) -> int:
    """The size, once it has fallen below `below` and has stayed the same for three seconds."""
    sizes: list[int] = []

    def steady() -> bool:
        sizes.append(size())
        return sizes[-1] < below and len(sizes) > 12 and len(set(sizes[-12:])) == 1

    until(steady)
    return sizes[-1]


def run(sides: Sequence[Side], directory: Path, *_: object) -> None:
    """kshim alone: the first side."""
    data_dir = directory / "data"
    server = Server(data_dir, [*OPTIONS, f"flush.policy={sides[0].flush}"]).start()
    try:
        client, stream, records = fill(server, TOPIC_BYTES)
        stream.stop()
        server.kill()
        started_at = time.perf_counter()
        server.restart()
        print(f"{'killed; ready again after':34} {time.perf_counter() - started_at:7.2f} s")
        client, stream = Client(server.bootstrap), Stream(server.bootstrap)
        read_anywhere(client, server, stream, records)
        clean(client, server, stream)
        stream.stop()
        server.stop()
    finally:
        if server.running:
            server.kill()
    print(f"{'the data file':34} {(data_dir / 'data.mdb').stat().st_size / GIB:7.2f} GiB")


def fill(server: Server, size: int) -> tuple[Client, Stream, int]:
    client = Client(server.bootstrap)
    client.create("stream")
    for name in ("big", "expired", "deleted"):
        client.create(name, retention_ms="-1")
    stream = Stream(server.bootstrap)
    with phase("nothing else", server, stream):
        time.sleep(5)
    with phase(f"produce {size / GIB:.1f} GiB", server, stream):
        records = client.fill("big", size)
    for name in ("expired", "deleted"):
        with phase(f"produce {size / GIB / 2:.1f} GiB", server, stream):
            client.fill(name, size // 2)
    return client, stream, records


def read_anywhere(client: Client, server: Server, stream: Stream, records: int) -> None:
    took_ms: list[float] = []
    read_bytes = 0
    with phase(f"{READS} reads from random offsets", server, stream):
        for _ in range(READS):
            started_at = time.perf_counter()
            read_bytes += client.read("big", random.randrange(records))
            took_ms.append((time.perf_counter() - started_at) * 1e3)
    took_ms.sort()
    p50, p99 = took_ms[READS // 2], took_ms[READS * 99 // 100]
    megabytes_s = read_bytes / sum(took_ms) / 1e3
    print(f"{'    a Fetch of 1 MiB':34} {megabytes_s:7.0f} MB/s p50 {p50:.2f} ms  p99 {p99:.2f} ms")


def clean(client: Client, server: Server, stream: Stream) -> None:
    with phase("nothing else", server, stream):
        time.sleep(5)
    with phase("expire half as much", server, stream):
        client.configure("expired", retention_ms="1000")
        until(lambda: client.size("expired") == 0)
        until_free(server)
    with phase("delete half as much", server, stream):
        client.delete("deleted")
        until_free(server)
    with phase("nothing else", server, stream):
        time.sleep(5)
    with phase("compact", server, stream):
        client.configure("big", cleanup_policy="compact")
        left = until_steady(lambda: client.size("big"), client.size("big") * 9 // 10)
    print(f"{'    left of it':34} {left / 1e6:7.0f} MB")
    with phase("nothing else", server, stream):
        time.sleep(5)


def until_free(server: Server) -> None:
    """Wait until the server is calm: no request asks whether it still frees space in the background."""
    used: list[float] = []

    def calm() -> bool:
        fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        used.append(int(fields[11]) + int(fields[12]))
        return len(used) > 8 and used[-1] - used[-5] < CALM_TICKS

    until(calm)
