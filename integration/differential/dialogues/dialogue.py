"""Records what clients and a server say to each other, with a proxy between them.

    with Recorder(target) as recorder:
        consumer = KafkaConsumer(bootstrap_servers=recorder.bootstrap, ...)
    recorder.exchanges

The proxy passes on every byte, but replaces the server's address by its own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from integration.differential.playing.player import Target
from kshim.testing.wire import sized
from schemas.api_key import ApiKey
from schemas.message import MalformedMessage
from schemas.registry import (
    UnsupportedVersion,
    decode_request,
    decode_request_header,
    decode_response,
    encode_response,
)

NAMES_THE_SERVER = {ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER}
START_TIMEOUT_S = 10


@dataclass
class Exchange:
    """A request and its response; the response is None if it did not come or cannot be read."""

    client: str
    api_key: int
    version: int
    request: Any
    response: Any = None


@dataclass
class Recorder:
    """A proxy in a thread of its own."""

    target: Target
    exchanges: list[Exchange] = field(default_factory=list)
    """The exchanges, in the order of the requests."""
    host: str = "127.0.0.1"
    port: int = 0

    def __enter__(self) -> Recorder:
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(START_TIMEOUT_S), "the proxy does not listen"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_TIMEOUT_S)

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, self.host, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(self.target.host, self.target.port)
        unanswered: deque[Exchange] = deque()
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_requests(reader, there_writer, unanswered))
                both.create_task(self._pass_responses(there_reader, writer, unanswered))
        except* (asyncio.IncompleteReadError, ConnectionError):
            pass  # one side has closed, so both are closed
        finally:
            writer.close()
            there_writer.close()

    async def _pass_requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, unanswered: deque[Exchange]
    ) -> None:
        while True:
            frame = await _frame(reader)
            exchange = _asked(frame)
            self.exchanges.append(exchange)
            if getattr(exchange.request, "acks", None) != 0:
                unanswered.append(exchange)
            await _pass_on(frame, writer)

    async def _pass_responses(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, unanswered: deque[Exchange]
    ) -> None:
        while True:
            frame = await _frame(reader)
            exchange = unanswered.popleft()
            if exchange.request is not None:
                frame = self._answered(exchange, frame)
            await _pass_on(frame, writer)

    def _answered(self, exchange: Exchange, frame: bytes) -> bytes:
        key, version = exchange.api_key, exchange.version
        try:
            correlation_id, response = decode_response(key, version, frame)
        except MalformedMessage:  # such as the error response to an unknown version
            return frame
        if key in NAMES_THE_SERVER:
            response = self._readdressed(response)
            frame = encode_response(key, version, correlation_id, response)
        exchange.response = response
        return frame

    def _readdressed(self, value: Any) -> Any:
        """`value` with the server's port replaced by this proxy's."""
        if isinstance(value, tuple):
            return tuple(map(self._readdressed, value))
        if not hasattr(value, "__dataclass_fields__"):
            return value
        changes = {
            each.name: self._readdressed(getattr(value, each.name)) for each in dataclasses.fields(value)
        }
        if (changes.get("host"), changes.get("port")) == (self.target.host, self.target.port):
            changes |= {"host": self.host, "port": self.port}
        return dataclasses.replace(value, **changes)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4)))


async def _pass_on(frame: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(sized(frame))
    await writer.drain()


def _asked(frame: bytes) -> Exchange:
    try:
        header, request = decode_request(frame)
    except (UnsupportedVersion, MalformedMessage):
        header, request = decode_request_header(frame)[0], None
    return Exchange(header.client_id or "", header.api_key, header.api_version, request)
