"""A raw connection to a broker, for the benchmarks: requests out, responses in, nothing in between."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.registry import decode_response, encode_request

NOT_READY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
READY_TIMEOUT_S = 10
TIMEOUT_S = 60


def framed(api_key: ApiKey, version: int, request: Any) -> bytes:
    """A request as it goes over the wire."""
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=1, client_id="benchmark")
    data = encode_request(header, request)
    return struct.pack(">i", len(data)) + data


class Connection:
    """One connection to one broker."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, api_key: ApiKey, version: int, request: Any) -> None:
        """One request; its response is fetched with `receive`."""
        self.socket.sendall(framed(api_key, version, request))

    def receive(self, api_key: ApiKey, version: int) -> Any:
        """The next response. Raises RuntimeError where it is an error."""
        _, response = decode_response(api_key, version, self.frame())
        if getattr(response, "error_code", ErrorCode.NONE) != ErrorCode.NONE:
            raise RuntimeError(f"the broker answered {response}")
        return response

    def ask(self, api_key: ApiKey, version: int, request: Any) -> Any:
        """One request and its response; asked again while the coordinator is not ready, for ten seconds."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            self.send(api_key, version, request)
            _, response = decode_response(api_key, version, self.frame())
            error = getattr(response, "error_code", ErrorCode.NONE)
            if error == ErrorCode.NONE:
                return response
            if error not in NOT_READY or time.monotonic() > deadline:
                raise RuntimeError(f"the broker answered {response}")
            time.sleep(0.05)

    def find_coordinator(self, group_id: str) -> None:
        """Wait for the group's coordinator: a broker makes its group topic at the first question."""
        self.ask(ApiKey.FIND_COORDINATOR, 1, FindCoordinatorRequest(key=group_id))

    def frame(self) -> bytes:
        """The next frame, without its size."""
        size: int = struct.unpack(">i", self._exactly(4))[0]
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            received = self.socket.recv(size - len(data))
            if not received:
                raise ConnectionError("the broker closed the connection")
            data += received
        return bytes(data)
