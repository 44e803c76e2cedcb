"""A client's side of Kafka's protocol: requests become frames, and frames become responses.

The functions know no socket; a `Wire` is one. The tests and benchmarks of kshim use them, too, where a client
library would hide what is sent.
"""

from __future__ import annotations

import itertools
import socket
from typing import Any

from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.message import definition
from schemas.registry import decode_response, encode_request

__all__ = ["Wire", "api_key_of", "framed", "payload", "sized"]

CLIENT_ID = "wire"
TIMEOUT_S = 10
SIZE_BYTES = 4


def api_key_of(request: object) -> ApiKey:
    """Return the API of a request."""
    api_key = definition(type(request)).api_key
    assert api_key is not None, f"{type(request).__name__} is no request"
    return api_key


def payload(
    version: int, request: object, client_id: str | None = CLIENT_ID, correlation_id: int = 1
) -> bytes:
    """Return a request with its header."""
    header = RequestHeader(
        api_key=api_key_of(request),
        api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return encode_request(header, request)


def sized(data: bytes) -> bytes:
    """Return bytes with their size before them, as all frames are sent."""
    return len(data).to_bytes(SIZE_BYTES) + data


def framed(
    version: int, request: object, client_id: str | None = CLIENT_ID, correlation_id: int = 1
) -> bytes:
    """Return a request as it is sent: its size, its header, and itself."""
    return sized(payload(version, request, client_id, correlation_id))


class Wire(socket.socket):
    """A connection. After several requests in a row, the responses are read in the order of the requests.

    `timeout_s` limits every wait for the socket.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str | None = CLIENT_ID,
        timeout_s: float = TIMEOUT_S,
        receive_buffer_bytes: int | None = None,
    ) -> None:
        """Connect. Raises OSError."""
        if receive_buffer_bytes is None:
            connected = socket.create_connection((host, port), timeout_s)
        else:
            connected = socket.socket()
            connected.settimeout(timeout_s)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            connected.connect((host, port))
        super().__init__(fileno=connected.detach())
        self.settimeout(timeout_s)
        self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._ids = itertools.count(2)

    def request(self, version: int, request: object) -> None:
        """Send a request; read its response with `response`."""
        self.sendall(framed(version, request, self._client_id))

    def response(self, version: int, api_key: ApiKey) -> Any:
        """Read the next response. Raises ConnectionError, TimeoutError."""
        return decode_response(api_key, version, self.frame())[1]

    def ask(self, version: int, request: object) -> Any:
        """Send a request and wait for its response. Raises ConnectionError, TimeoutError."""
        correlation_id = next(self._ids)
        self.sendall(framed(version, request, self._client_id, correlation_id))
        api_key = api_key_of(request)
        answered, response = decode_response(api_key, version, self.frame())
        assert answered == correlation_id, f"{api_key.name}: {answered} answers {correlation_id}"
        return response

    def frame(self) -> bytes:
        """Read the next frame, and return it without its size. Raises ConnectionError, TimeoutError."""
        return self.read(int.from_bytes(self.read(SIZE_BYTES)))

    def read(self, count: int) -> bytes:
        """Read exactly `count` bytes.

        Raises ConnectionError if the broker closes the connection before that, TimeoutError.
        """
        data = bytearray()
        while len(data) < count:
            chunk = self.recv(count - len(data))
            if not chunk:
                raise ConnectionError(f"the broker closed the connection after {len(data)} of {count} bytes")
            data += chunk
        return bytes(data)
