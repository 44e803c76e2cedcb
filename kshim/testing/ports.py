"""Ports that stay reserved for a server while it is stopped.

While a server is down, the system might give its port to some client's outgoing connection. So a bound socket
holds each port all the time. On Linux, SO_REUSEADDR lets the server listen beside that socket. On other
systems the port is released while the server runs, and taken again after that.
"""

from __future__ import annotations

import random
import socket
import sys

HOST = "127.0.0.1"
RANGE = range(20_000, 32_000)
"""Below the range from which systems pick ports for outgoing connections."""
BESIDE = sys.platform == "linux"


class Ports:
    """`count` ports in a row, from `first` on, until `close`."""

    def __init__(self, count: int) -> None:
        for first in random.sample(RANGE, len(RANGE)):
            self.first, self._count = first, count
            self._held: list[socket.socket] = []
            try:
                self.hold()
            except OSError:
                self.close()
            else:
                return
        raise OSError(f"there are no {count} free ports in a row")

    def hold(self) -> None:
        """Take the ports, if they are not held. Raises OSError if another process has one of them."""
        while len(self._held) < self._count:
            holder = socket.socket()
            self._held.append(holder)
            holder.bind((HOST, self.first + len(self._held) - 1))
            if BESIDE:  # after bind: a second holder, which lacks the option when it binds, fails
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    def let_server_bind(self) -> None:
        if not BESIDE:
            self.close()

    def close(self) -> None:
        while self._held:
            self._held.pop().close()
