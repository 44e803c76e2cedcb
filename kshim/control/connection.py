"""A connection of the control socket: each line is a command, whose reply is sent as fast as it is read."""

from __future__ import annotations

import json
import logging
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.protocol import connectionDone
from twisted.protocols.basic import LineOnlyReceiver
from twisted.python.failure import Failure

from kshim.control.commands import Commands, SteeringError, run
from kshim.control.long import Long, pieces

logger = logging.getLogger(__name__)


class Connection(LineOnlyReceiver):
    """One connection."""

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
