"""The control socket: another process, such as `kshim cluster`, sends the server commands through it.

Only the user who runs the server may connect. A request is one line of JSON, [command, arguments]. Its reply
is JSON, too: {"done": ...} or {"refused": "why"}.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.protocol import Factory

from kshim.control.client import FILE_NAME, short_path
from kshim.control.commands import Commands
from kshim.network.listeners import CannotListen

if TYPE_CHECKING:
    from kshim.configs.config import Config
    from kshim.control.connection import Connection
    from kshim.storage.reactor import Port, Reactor

OWNER_ONLY, OTHERS = 0o600, 0o177
"""The mode of the socket, and the umask while it is made."""


def control_path(config: Config) -> Path | None:
    """The path of the socket; None for a server in memory, if no path is configured."""
    if config.control_path:
        return Path(config.control_path)
    return None if config.in_memory else Path(config.log_dirs) / FILE_NAME


class ControlSocket:
    """Listens while the server runs. Errors in a command go into its reply, never into the log."""

    def __init__(self, path: Path, commands: Commands, reactor: Reactor) -> None:
        self._path = path
        self._factory = _Requests(commands)
        self._reactor = reactor
        self._port: Port | None = None
        self._open = ExitStack()

    def open(self) -> None:
        """Begin to listen. Raises CannotListen."""
        try:
            _remove_what_nobody_listens_at(self._path)
            short = self._open.enter_context(short_path(self._path))
            before = os.umask(OTHERS)  # nobody else may connect in the moment before its mode is set
            try:
                self._port = self._reactor.listenUNIX(short, self._factory, mode=OWNER_ONLY)
            finally:
                os.umask(before)
        except CannotListenError as error:
            reason = getattr(error.socketError, "strerror", None) or error.socketError
            raise CannotListen(f"cannot listen at {self._path}: {reason}") from error
        except OSError as error:
            raise CannotListen(f"cannot listen at {self._path}: {error.strerror}") from error

    def close(self) -> Deferred[None]:
        """Stop listening, and remove the socket, unless somebody has. Fires when that is done."""
        return Deferred.fromCoroutine(self._close())

    async def _close(self) -> None:
        port, self._port = self._port, None
        if port is not None:
            with suppress(FileNotFoundError):  # tests remove directories while their servers still run
                await maybeDeferred(port.stopListening)
        self._open.close()


def _remove_what_nobody_listens_at(path: Path) -> None:
    """Remove the socket that a killed server left behind.

    Raises OSError if the file is no socket, or a server listens there.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(0, "the file exists, and is no socket")
        with short_path(path) as short, socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(short) == 0:
                raise FileExistsError(0, "another server listens there")
        path.unlink()


class _Requests(Factory):
    noisy = False

    def __init__(self, commands: Commands) -> None:
        self.commands = commands

    def buildProtocol(self, addr: object) -> Connection:
        from kshim.control.connection import Connection  # most servers are never sent a command

        return Connection(self.commands)
