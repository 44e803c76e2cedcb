"""A connection to a broker without a client library. It sends and receives messages and frames."""

from __future__ import annotations

import socket
import struct
from typing import Any

from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.registry import MESSAGES, decode_response, encode_request

TIMEOUT_S = 10
API_KEYS = {request: api_key for api_key, (request, _) in MESSAGES.items()}


def framed(version: int, request: Any, client_id: str = "wire") -> bytes:
    """A request with its size before it, as it is sent."""
    api_key = API_KEYS[type(request)]
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=1, client_id=client_id)
    data = encode_request(header, request)
    return struct.pack(">i", len(data)) + data


class Wire(socket.socket):
    """A connection. After several requests in a row, the responses are read in the order of the requests."""

    def __init__(
        self, host: str, port: int, *, timeout_s: float = TIMEOUT_S, receive_buffer_bytes: int | None = None
    ) -> None:
        super().__init__()
        if receive_buffer_bytes:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.settimeout(timeout_s)
        self.connect((host, port))

    def request(self, version: int, request: Any) -> None:
        """Send a request; read its response with `response`."""
        self.sendall(framed(version, request))

    def response(self, version: int, api_key: ApiKey) -> Any:
        """Read the next response. Raises ConnectionError, TimeoutError."""
        return decode_response(api_key, version, self.frame())[1]

    def ask(self, version: int, request: Any) -> Any:
        """Send a request and wait for its response. Raises ConnectionError, TimeoutError."""
        self.request(version, request)
        return self.response(version, API_KEYS[type(request)])

    def frame(self) -> bytes:
        """Read the next frame, and return it without its size. Raises ConnectionError, TimeoutError."""
        size: int = struct.unpack(">i", self.read(4))[0]
        return self.read(size)

    def read(self, count: int) -> bytes:
        """Read exactly `count` bytes.

        Raises ConnectionError if the server closes before that, TimeoutError.
        """
        data = bytearray()
        while len(data) < count:
            chunk = self.recv(count - len(data))
            if not chunk:
                raise ConnectionError(f"closed after {len(data)} of {count} bytes")
            data += chunk
        return bytes(data)
