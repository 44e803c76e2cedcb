"""A broker played by hand on the loopback: a thread answers requests in order, with what the test gives."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from kshim.client.settings import ClientSettings
from kshim.configs.endpoint import Endpoint
from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.messages.api_versions import ApiVersion, ApiVersionsResponse
from schemas.registry import VERSIONS, decode_request, encode_response

Answer = Callable[[RequestHeader, Any], Any]


class PlayedBroker:
    """Answers on each connection until the `with` block ends. A function answers each API; None as its answer
    closes the connection, and bytes are sent as they are.
    """

    def __init__(self, answers: Mapping[ApiKey, Answer], versions: Mapping[ApiKey, range] = VERSIONS) -> None:
        self._answers = {ApiKey.API_VERSIONS: self._list_versions, **answers}
        self._versions = versions
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self.requests: list[tuple[RequestHeader, Any]] = []
        """All requests but ApiVersions."""

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def settings(self, **more: Any) -> ClientSettings:
        return ClientSettings(bootstrap=[Endpoint("127.0.0.1", self.port)], timeout_s=5, **more)

    def __enter__(self) -> PlayedBroker:
        self._begin(self._accept)
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._threads:
            each.join(5)
            assert not each.is_alive(), "a client has left its connection open"

    def _begin(self, run: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._begin(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as received:
            while size := received.read(4):
                header, request = decode_request(received.read(int.from_bytes(size)))
                key = ApiKey(header.api_key)
                if key is not ApiKey.API_VERSIONS:
                    self.requests.append((header, request))
                answer = self._answers[key](header, request)
                if answer is None:
                    return
                if not isinstance(answer, bytes):
                    data = encode_response(key, header.api_version, header.correlation_id, answer)
                    answer = len(data).to_bytes(4) + data
                connection.sendall(answer)

    def _list_versions(self, header: RequestHeader, request: Any) -> ApiVersionsResponse:
        listed = [
            ApiVersion(api_key=key, min_version=some.start, max_version=some.stop - 1)
            for key, some in self._versions.items()
        ]
        return ApiVersionsResponse(api_keys=tuple(listed))
