"""A link to a broker, with a test in the place of the broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from kshim.configs.endpoint import Endpoint
from kshim.network.frames import Frames
from kshim.upstream.link import Link, LinkError
from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.messages.api_versions import ApiVersion, ApiVersionsResponse
from schemas.registry import decode_request, encode_response
from tests.api.harness import result
from tests.network.frames import frame

ADDRESS = Endpoint("10.0.0.1", 9092)
SERVED = (
    ApiVersion(api_key=ApiKey.PRODUCE, min_version=3, max_version=9),
    ApiVersion(api_key=ApiKey.LIST_GROUPS, min_version=0, max_version=99),
    ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=0, max_version=2),
    ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=3),
)


class Transport(StringTransport):
    """Remembers what was sent."""

    def __init__(self) -> None:
        here, there = IPv4Address("TCP", "10.0.0.7", 51000), IPv4Address("TCP", ADDRESS.host, ADDRESS.port)
        super().__init__(here, there)

    def setTcpNoDelay(self, enabled: bool) -> None: ...  # noqa: N802
    def setTcpKeepAlive(self, enabled: bool) -> None: ...  # noqa: N802


class Upstream:
    """A link, and the broker at its other end, in whose place a test answers."""

    def __init__(self, served: Sequence[ApiVersion] = SERVED) -> None:
        self.clock = Clock()
        self.served = tuple(served)
        self.link = Link(self.clock, ADDRESS, "kshim")
        self.transport = Transport()
        self.link.makeConnection(self.transport)
        self.lost: list[LinkError] = []
        self.link.on_lost(self.lost.append)
        self.negotiated = self.link.negotiate(timeout_s=5)

    def requests(self) -> list[tuple[RequestHeader, Any]]:
        """The requests that came since the last call."""
        frames = Frames(1 << 20)
        frames.receive(self.transport.value())
        self.transport.clear()
        found = []
        while (each := frames.next_frame()) is not None:
            found.append(decode_request(each))
        return found

    def answer(self, header: RequestHeader, response: Any, version: int | None = None) -> None:
        version = header.api_version if version is None else version
        self.send(encode_response(header.api_key, version, header.correlation_id, response))

    def send(self, payload: bytes) -> None:
        self.link.dataReceived(frame(payload))

    def negotiate(self) -> Upstream:
        ((header, _),) = self.requests()
        self.answer(header, ApiVersionsResponse(api_keys=self.served))
        assert result(self.negotiated) is self.link
        return self
