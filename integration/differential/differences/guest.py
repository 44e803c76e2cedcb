"""One server as a scenario sees it: a talk in which requests may stay without an answer."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Callable
from typing import Any, TypeVar

from integration.differential.playing.asking import CLOSED
from integration.differential.playing.player import REST_S, errors
from integration.differential.stories.transaction_talk import TransactionTalk
from integration.support.awaiting import wait_until
from kshim.testing.wire import Wire, api_key_of, sized
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode

T = TypeVar("T")

NO_ANSWER = "no answer"
SILENCE_S = 4
"""How long an answer is awaited where there may be none."""
PATIENCE_S = 60
"""How long an answer is awaited that must come, however busy the server is."""
LATER_ONES = 2
"""After the answers to so many later requests, an earlier one has been read."""


class Guest(TransactionTalk):
    def __init__(self, host: str, port: int, name: str, patience_s: float = PATIENCE_S) -> None:
        """patience_s: a server that has not answered after this time never will."""
        super().__init__(host, port, name)
        self._patience_s = patience_s

    def answer(self, version: int, request: Any, *, via: str = "main") -> Any:
        """The response, or a text that says why there is none; then the connection is closed."""
        self.send(version, request, via=via)
        return self.next_answer(version, api_key_of(request), via=via)

    def next_answer(self, version: int, api_key: ApiKey, *, via: str = "main") -> Any:
        """The response to the oldest request that has none yet."""
        connection = self._wire(via)
        connection.settimeout(self._patience_s)
        try:
            response = self._answer(version, api_key, via)
        except (TimeoutError, ConnectionError) as error:
            self._wires.pop(via).close()
            return NO_ANSWER if isinstance(error, TimeoutError) else CLOSED
        return response

    def error(self, version: int, request: Any, *, via: str = "main") -> str:
        """The name of the first error in the response, NONE, or why there is no response."""
        return error_of(self.answer(version, request, via=via))

    def until_read(self, *, via: str = "main") -> None:
        """Wait until the request on a connection is answered, or was read and is kept: later ones are
        answered. Unlike `rest` it takes no longer on a busy machine than a kept request is kept.
        """
        for _ in range(LATER_ONES):
            if select.select([self._wire(via)], [], [], REST_S)[0]:
                return
            self.unheard(12, self.fetching(version=12))

    def send_bytes(self, frame: bytes, *, via: str = "main") -> None:
        """Send a request; read its answer with `next_answer`."""
        self._wire(via).sendall(sized(frame))

    def heard_of(self, data: bytes) -> bytes:
        """Send bytes that are no request, and return what is received until the connection is closed."""
        heard = bytearray()
        with contextlib.closing(self._wires.pop("main", None) or Wire(*self._address)) as connection:
            connection.settimeout(self._patience_s)
            connection.sendall(data)
            while chunk := connection.recv(4096):
                heard += chunk
        return bytes(heard)

    def go_to(self, host: str, port: int) -> None:
        """Use the server at this address from now on: it was started again."""
        self.close()
        self._wires: dict[str, Wire] = {}
        self._address = (host, port)


def error_of(response: Any) -> str:
    if isinstance(response, str):
        return response
    return ErrorCode(next(filter(None, errors(response)), 0)).name


def soon(look: Callable[[], T], hoped: T) -> T:
    """Call `look` until it returns `hoped`, but not for long; return its last result."""
    with contextlib.suppress(AssertionError):
        wait_until(lambda: look() == hoped, SILENCE_S, str(hoped))
    return look()
