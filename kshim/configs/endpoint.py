"""A host and a port, as users write them."""

from __future__ import annotations

from typing import Final, NamedTuple


class Endpoint(NamedTuple):
    """A host and a port. An empty host means every address of this machine, and port 0 any free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """Parse `127.0.0.1:9092`, `localhost:9092`, `[::1]:9092` or `:9092`. Raises ValueError, in words for
        the user.
        """
        host, colon, port = text.strip().rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        if not colon or (":" in host and not bracketed) or any(c.isspace() for c in host):
            raise ValueError("expected HOST:PORT, as in 127.0.0.1:9092 or [::1]:9092")
        if not (port.isascii() and port.isdigit() and int(port) <= 65535):
            raise ValueError("expected HOST:PORT with a port from 0 to 65535")
        return cls(host[1:-1] if bracketed else host, int(port))

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can connect to it."""
        return names_loopback(self.host)

    @property
    def is_nowhere(self) -> bool:
        """True if it means every address of a machine, as 0.0.0.0 and :: do. Nobody can connect to it."""
        from ipaddress import ip_address

        try:
            return not self.host or ip_address(self.host).is_unspecified
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


NO_ADDRESS: Final = Endpoint("", 0)


def names_loopback(host: str) -> bool:
    """True if a host is the loopback: localhost, an address in 127.0.0.0/8, or ::1."""
    if host.lower() == "localhost":
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
