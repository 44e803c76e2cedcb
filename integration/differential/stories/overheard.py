"""A talk of unmodified clients: a proxy between them and the server writes down what both say.

The proxy passes on every byte, but replaces the server's address by its own. Each client's *acts* are heard
in their order: joins, syncs, leaves, commits. Its *chatter* is what it repeats while time passes (fetches,
metadata, heartbeats with an error): each different line is heard once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

from integration.differential.playing.compare import SETS, SETS_WHEN_ALL_ARE_ASKED_FOR, Compared
from integration.differential.playing.player import Target, Transcript
from kshim.testing.wire import sized
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.message import MalformedMessage
from schemas.messages.join_group import JoinGroupResponse
from schemas.registry import (
    UnsupportedVersion,
    decode_request,
    decode_request_header,
    decode_response,
    encode_response,
)

NAMES_THE_SERVER = {ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER}
START_TIMEOUT_S = 10
ACTS = {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_COMMIT}
TIME_PASSED = re.compile(r"\S+ HEARTBEAT v\d+ -> NONE")
GIVES_AN_ID = {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED}
UNORDERED = {
    *SETS,
    *SETS_WHEN_ALL_ARE_ASKED_FOR,
    ("SyncGroupRequest", "assignments"),
    ("OffsetCommitRequestTopic", "partitions"),
    ("OffsetCommitResponseTopic", "partitions"),
}
BY_CHANCE = {("OffsetCommitRequestPartition", "committed_leader_epoch")}
"""kafka-python forgets the epoch of a position when a fetch brings no record of that partition."""


@dataclass
class Exchange:
    """A request and its response; the response is None if it did not come or cannot be read."""

    client: str
    api_key: int
    version: int
    request: Any
    response: Any = None

    def line(self, plain: Compared) -> str:
        """The exchange as it is compared."""
        name = f"{self.client}: {ApiKey(self.api_key).name} v{self.version}"
        if self.api_key not in ACTS:
            return f"{name} -> {ErrorCode(getattr(self.response, 'error_code', 0)).name}"
        answer = "no answer" if self.response is None else plain.plain(self.response)
        return f"{name} {plain.plain(self.request)} -> {answer}"


class Overheard:
    """Clients that connect to `bootstrap` talk with the server `target`."""

    def __init__(self, target: Target, group: str) -> None:
        self.target, self.group = target, group
        self.host, self.port = "127.0.0.1", 0
        self.exchanges: list[Exchange] = []
        """The exchanges, in the order of the requests."""
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(START_TIMEOUT_S), "the proxy does not listen"

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_TIMEOUT_S)

    # ---- what is heard

    @property
    def heard(self) -> list[str]:
        """Each client's acts, and its chatter, as the module says."""
        plain = Compared(self._transcript(), UNORDERED, BY_CHANCE)
        whole = sorted((each for each in self.exchanges), key=lambda each: each.client)
        acts = [each.line(plain) for each in whole if each.api_key in ACTS]
        others = (each for each in whole if each.api_key not in ACTS and each.response is not None)
        chatter = {each.line(plain) for each in others}
        return acts + sorted(line for line in chatter if not TIME_PASSED.fullmatch(line))

    def _transcript(self) -> Transcript:
        """The ids that each client was given; the clients see the server at the proxy's address."""
        transcript = Transcript(Target(self.host, self.port, self.target.topic_ids), self.group)
        for number, exchange in enumerate(self.exchanges):
            answer = exchange.response
            if isinstance(answer, JoinGroupResponse) and answer.error_code in GIVES_AN_ID:
                transcript.given.setdefault(exchange.client, {}).setdefault(answer.member_id, number)
        return transcript

    # ---- the proxy

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
