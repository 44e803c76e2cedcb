"""A connection to a server: sends frames in order, and receives their answers in the same order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from kshim.network.frames import Frames
from kshim.testing.wire import api_key_of, payload, sized
from schemas.registry import decode_response

CLOSED = "the connection is closed"
LARGEST_BYTES = (1 << 31) - 1
Answer = Callable[[bytes | str], None]
"""Called with the frame of an answer, or with a text that says why there is none."""


class Address(Protocol):
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._frames = Frames(LARGEST_BYTES)
        self._unanswered: deque[Answer] = deque()
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def open(cls, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(cls, address.host, address.port))[1]

    def send(self, frame: bytes, on_answer: Answer) -> None:
        if self._transport is None:
            on_answer(CLOSED)
        else:
            self._unanswered.append(on_answer)
            self._transport.write(sized(frame))

    async def ask(self, version: int, request: object) -> Any:
        """The response to one request. Raises ConnectionError."""
        answer: asyncio.Future[bytes | str] = asyncio.get_running_loop().create_future()
        self.send(payload(version, request), answer.set_result)
        frame = await answer
        if isinstance(frame, str):
            raise ConnectionError(frame)
        return decode_response(api_key_of(request), version, frame)[1]

    def close(self) -> None:
        """Requests without an answer stay unanswered."""
        self._unanswered.clear()
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._frames.receive(data)
        while (frame := self._frames.next_frame()) is not None:
            self._unanswered.popleft()(bytes(frame))

    def connection_lost(self, error: Exception | None) -> None:
        self._give_up()

    def _give_up(self) -> None:
        self._transport = None
        unanswered, self._unanswered = self._unanswered, deque()
        for on_answer in unanswered:
            on_answer(CLOSED)
