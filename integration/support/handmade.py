"""Hand-made bytes that no client would send."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from kafka.record import MemoryRecordsBuilder

from integration.support.server import Server
from kshim.testing.wire import Wire, sized

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 0, 1, 2, 3, 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, API_VERSIONS = 11, 12, 13, 14, 18
CLIENT_ID = "raw"


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def array(*items: bytes) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def request(
    api_key: int, api_version: int, body: bytes = b"", *, correlation_id: int = 1, client_id: str = CLIENT_ID
) -> bytes:
    """A whole frame with request header v1."""
    return sized(struct.pack(">hhi", api_key, api_version, correlation_id) + string(client_id) + body)


def record_batch(
    value: bytes | None = b"value",
    *,
    key: bytes | None = b"key",
    headers: Sequence[tuple[str, bytes | None]] = (("h", b"x"),),
    timestamp_ms: int = 1_000,
) -> bytes:
    """A record batch v2 with one record, made by kafka-python's encoder.

    Its API would refuse some arguments.
    """
    builder = MemoryRecordsBuilder(2, 0, 1 << 20)
    builder.append(timestamp=timestamp_ms, key=key, value=value, headers=list(headers))
    builder.close()
    return bytes(builder.buffer())


def produce(topic: str, records: bytes, *, partition: int = 0, correlation_id: int = 1) -> bytes:
    """A Produce v3 request with acks=1."""
    data = array(struct.pack(">ii", partition, len(records)) + records)
    body = struct.pack(">hhi", -1, 1, 5000) + array(string(topic) + data)
    return request(PRODUCE, 3, body, correlation_id=correlation_id)


class Raw(Wire):
    """A connection that sends any bytes, and finds what the server logs about it."""

    def __init__(self, server: Server, receive_buffer_bytes: int | None = None) -> None:
        super().__init__(server.host, server.port, receive_buffer_bytes=receive_buffer_bytes)
        self.address = "{}:{}".format(*self.getsockname())
        self._log, self._log_start = server.log, len(server.log)

    def log_lines(self) -> list[str]:
        """The server's log lines about this connection, without those about an earlier one from its port."""
        pattern = rf"\b{re.escape(self.address)}\b"
        return [line for line in self._log[self._log_start :] if re.search(pattern, line)]

    def answer_to(self, frame: bytes) -> bytes:
        """Send one frame and return the frame that comes back."""
        self.sendall(frame)
        return self.frame()

    def is_closed_by_server(self) -> bool:
        """Return True when the server closes the connection, False when it answers. Raises TimeoutError."""
        try:
            return self.recv(1) == b""
        except ConnectionError:
            return True
