"""One connection to a broker. It uses kshim's own messages, so tests need no Kafka client for it.

Each request is sent in the version in `VERSIONS`. Apache Kafka serves these versions from 2.4 on, those of
requests about quotas from 2.6 on.
"""

from __future__ import annotations

import itertools
import socket
from typing import Final, TypeVar

from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.message import definition
from schemas.registry import decode_response, encode_request

__all__ = ["CLIENT_ID", "Connection"]

CLIENT_ID = "kshim.testing"
R = TypeVar("R")

VERSIONS: Final = {
    ApiKey.PRODUCE: 8,
    ApiKey.FETCH: 11,
    ApiKey.LIST_OFFSETS: 5,
    ApiKey.METADATA: 9,
    ApiKey.OFFSET_FETCH: 7,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.LEAVE_GROUP: 4,
    ApiKey.DESCRIBE_GROUPS: 5,
    ApiKey.LIST_GROUPS: 3,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DELETE_TOPICS: 4,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: 0,
    ApiKey.ALTER_CLIENT_QUOTAS: 0,
}


class Connection:
    """Sends one request at a time. `timeout_s` limits every wait for the socket."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        """Connect. Raises OSError."""
        self._socket = socket.create_connection((host, port), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")
        self._ids = itertools.count()

    def ask(self, request: object, response_class: type[R], timeout_s: float) -> R:
        """Send a request, and return the response. Raises OSError, such as TimeoutError."""
        api_key = definition(type(request)).api_key
        assert api_key is not None
        version, correlation_id = VERSIONS[api_key], next(self._ids)
        header = RequestHeader(
            api_key=api_key, api_version=version, correlation_id=correlation_id, client_id=CLIENT_ID
        )
        frame = encode_request(header, request)
        self._socket.settimeout(timeout_s)
        self._socket.sendall(len(frame).to_bytes(4) + frame)
        size = int.from_bytes(self._read(4))
        answered, response = decode_response(api_key, version, self._read(size))
        assert answered == correlation_id, f"{api_key.name}: {answered} answers {correlation_id}"
        assert isinstance(response, response_class)
        return response

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    def _read(self, count: int) -> bytes:
        data = self._answers.read(count)
        if len(data) < count:
            raise ConnectionResetError("the broker closed the connection")
        return data
