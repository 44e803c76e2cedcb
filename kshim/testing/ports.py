"""Ports that stay a server's own while it is stopped.

A free port that the system picks may, while the server is down, become the port of some client's own
connection. These are held all the time: by a bound socket that lets only a server beside it, as
SO_REUSEADDR allows on Linux. Elsewhere they are released while the server runs, and taken again after it.
"""

from __future__ import annotations

import random
import socket
import sys

HOST = "127.0.0.1"
RANGE = range(20_000, 32_000)
"""Below the ports from which systems pick for connections."""
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
            if BESIDE:  # only now: whoever binds after this must allow it, too
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    def let_server_bind(self) -> None:
        if not BESIDE:
            self.close()

    def close(self) -> None:
        while self._held:
            self._held.pop().close()
