"""A transport in memory, for a server's side of a connection."""

from collections.abc import Iterable

from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransport


class Transport(StringTransport):
    """Keeps what is written, and records which options were set and that it was aborted."""

    def __init__(self) -> None:
        super().__init__(IPv4Address("TCP", "10.0.0.1", 9092), IPv4Address("TCP", "10.0.0.7", 51000))
        self.options: set[str] = set()
        self.aborted = False
        self.unsent_bytes = 0
        self.sent_later_bytes = 0

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802
        self.options.add("no delay")

    def setTcpKeepAlive(self, enabled: bool) -> None:  # noqa: N802
        self.options.add("keep alive")

    def send_at_once(self, pieces: Iterable[bytes]) -> None:
        self.writeSequence(pieces)

    def abortConnection(self) -> None:  # noqa: N802
        self.aborted = True
        self.disconnected = True

    @property
    def reads(self) -> bool:
        return self.producerState == "producing"
