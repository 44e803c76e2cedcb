"""Bytes a second in a server's answers to Fetch, without a client library that reads the records.

Each connection asks for the beginning of a partition again and again, and throws away what it gets.
"""

from __future__ import annotations

import selectors
import struct

from benchmarks.generator import Load
from benchmarks.loads.records import ends, fill
from benchmarks.processor import Measured, Window
from benchmarks.raw import Connection
from benchmarks.servers import Target
from kshim.testing.wire import framed
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.registry import decode_response

VERSION = 12
CONNECTIONS = 4
SIZE = struct.Struct(">i")
RECEIVE_BYTES = 1 << 18


class Fetcher(Connection):
    """A connection that counts what is to come of an answer."""

    left_bytes = 0

    def take(self, scratch: bytearray) -> int:
        """Receive some of an answer; returns how many bytes."""
        if not self.left_bytes:
            self.left_bytes = SIZE.unpack(self.read(SIZE.size))[0]
        received = self.recv_into(scratch, min(self.left_bytes, len(scratch)))
        self.left_bytes -= received
        return received


def fetch(target: Target, load: Load, seconds: float) -> Measured:
    """The rate of bytes in answers of up to `answer_bytes`."""
    answer_bytes = load["answer_bytes"]
    topic = f"fetch-{answer_bytes}"
    fill(target, topic, {"partitions": 1, "value_bytes": 1000, "records": 2 * answer_bytes // 1000})
    assert sum(ends(target, topic, 1))
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=answer_bytes)
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=answer_bytes,
        topics=(FetchTopic(topic=topic, partitions=(partition,)),),
    )
    frame, scratch, taken = framed(VERSION, request), bytearray(RECEIVE_BYTES), 0
    selector = selectors.DefaultSelector()
    for _ in range(CONNECTIONS):
        fetcher = Fetcher(target.bootstrap).greet()
        fetcher.sendall(frame)
        check(fetcher.frame())
        selector.register(fetcher, selectors.EVENT_READ)
    with Window(target.pid) as window:
        for key in selector.get_map().values():
            key.fileobj.sendall(frame)  # type: ignore[union-attr]
        while window.so_far_s < seconds:
            for key, _events in selector.select(seconds):
                fetcher = key.fileobj  # type: ignore[assignment]
                taken += fetcher.take(scratch)
                if not fetcher.left_bytes:
                    fetcher.sendall(frame)
    for key in list(selector.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]
    return window.measured(taken // 1000, {"MB/s": taken / window.seconds / 1e6})


def check(frame: bytes) -> None:
    """Raises RuntimeError for an answer with an error."""
    _, response = decode_response(ApiKey.FETCH, VERSION, frame)
    error = ErrorCode(response.error_code or response.responses[0].partitions[0].error_code)
    if error:
        raise RuntimeError(f"the broker answered {error.name}")
