"""The control socket: another process, such as `kshim cluster`, sends the server commands through it.

Only the user who runs the server may connect. A request is one line of JSON, [command, arguments]. Its reply
is JSON, too: {"done": ...} or {"refused": "why"}.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.protocol import Factory, connectionDone
from twisted.protocols.basic import LineOnlyReceiver
from twisted.python.failure import Failure

from kshim.control.client import FILE_NAME, short_path
from kshim.control.commands import Commands, SteeringError, run
from kshim.control.long import Long, pieces
from kshim.network.listeners import CannotListen

if TYPE_CHECKING:
    from kshim.configs.config import Config
    from kshim.storage.reactor import Port, Reactor

logger = logging.getLogger(__name__)

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
        """Stop listening, and remove the socket. Fires when that is done."""
        return Deferred.fromCoroutine(self._close())

    async def _close(self) -> None:
        port, self._port = self._port, None
        if port is not None:
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

    def buildProtocol(self, addr: object) -> _Request:
        return _Request(self.commands)


class _Request(LineOnlyReceiver):
    """One connection; each line is a command."""

    transport: Any
    delimiter = b"\n"

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._answering: set[Deferred[None]] = set()

    def lineReceived(self, line: bytes) -> None:
        answering = Deferred.fromCoroutine(self._answer(line))
        self._answering.add(answering)
        answering.addErrback(_gone).addBoth(lambda _: self._answering.discard(answering))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        for answering in list(self._answering):
            answering.cancel()

    async def _answer(self, line: bytes) -> None:
        try:
            result = await maybeDeferred(self._do, line)
        except SteeringError as error:
            self._reply({"refused": str(error)})
        except CancelledError:
            raise
        except Exception as error:
            logger.error("a command of the control socket failed: %r", error, exc_info=error)
            self._reply({"refused": str(error)})
        else:
            if isinstance(result, Long):
                await self._send(result)
            else:
                self._reply({"done": result})

    def _do(self, line: bytes) -> object:
        try:
            command, arguments = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            command, arguments = None, ()
        return run(self._commands, command, arguments)

    def _reply(self, reply: dict[str, object]) -> None:
        self.transport.write(json.dumps(reply).encode() + self.delimiter)

    async def _send(self, result: Long) -> None:
        """Send a result as fast as the other process reads it."""
        flow = Flow()
        self.transport.registerProducer(flow, True)
        try:
            self.transport.write(b'{"done": ')
            async for piece in pieces(result, end_of_row=b" "):
                self.transport.write(piece)
                await flow.room()
            self.transport.write(b"}" + self.delimiter)
        except Exception as error:
            logger.error("the answer to a command cannot be made: %r", error, exc_info=error)
            self.transport.loseConnection()
        finally:
            self.transport.unregisterProducer()


class Flow:
    """Makes a sender wait while the other end does not read."""

    def __init__(self) -> None:
        self._is_paused = False
        self._has_room: Deferred[None] | None = None

    async def room(self) -> None:
        """Return when the other end has read what was sent."""
        if self._is_paused:
            self._has_room = Deferred()
            await self._has_room

    def pauseProducing(self) -> None:
        self._is_paused = True

    def resumeProducing(self) -> None:
        self._is_paused = False
        has_room, self._has_room = self._has_room, None
        if has_room is not None and not has_room.called:
            has_room.callback(None)

    def stopProducing(self) -> None:
        """Do nothing: the lost connection cancels the answer."""


def _gone(failure: Failure) -> None:
    """Ignore that the other process has disconnected before its answer was sent."""
    failure.trap(CancelledError)
