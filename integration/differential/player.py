"""Play one history against one server, and write down what it answers."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from integration.differential.history import GROUP, Answered, Ask, Id, Pause, Step
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.join_group import JoinGroupResponse
from schemas.message import MalformedMessage
from schemas.offset_commit import OffsetCommitRequestTopic
from schemas.offset_fetch import OffsetFetchRequestTopics
from schemas.registry import decode_response, encode_request

ANSWER_TIMEOUT_S = 6
"""How long a request that is waited for may take; then the history goes on without its answer."""
SETTLE_S = 0.2
"""How long to stay with a request that is not waited for, so that the next one comes behind it."""
LAST_TIMEOUT_S = 1.5
"""How long to wait at the end for what was not waited for."""
UNKNOWN_TOPIC_ID = UUID(int=4711)


@dataclass(frozen=True)
class Target:
    """Where a history is played: a server's address, and the ids it gave to the topics."""

    host: str
    port: int
    topic_ids: Mapping[str, UUID]


@dataclass
class Asked:
    """A request that was sent, and its answer: a response, or a text that says why there is none."""

    step: Ask
    version: int
    answer: Any = None
    is_answered: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Transcript:
    """What one server did in one history. seen: step by step an Asked, or who waited at a pause."""

    target: Target
    group: str
    seen: list[Asked | frozenset[str] | None] = field(default_factory=list)
    ids: dict[str, list[str]] = field(default_factory=dict)


async def play(steps: Sequence[Step], era: int, group: str, target: Target) -> Transcript:
    """All steps in order, and then a little time for the answers that are still missing."""
    player = _Player(Transcript(target, group), era)
    try:
        for step in steps:
            player.transcript.seen.append(await player.take(step))
        await player.wait_for(player.transcript.seen, LAST_TIMEOUT_S)
    finally:
        await player.close()
    return player.transcript


class _Player:
    def __init__(self, transcript: Transcript, era: int) -> None:
        self.transcript = transcript
        self.era = era
        self.connections: dict[str, _Connection] = {}

    async def take(self, step: Step) -> Asked | frozenset[str] | None:
        match step:
            case Ask():
                return await self.ask(step)
            case Pause(ms=ms):
                await asyncio.sleep(ms / 1000)
                return frozenset(asked.step.connection for asked in self.waiting())
            case Answered(clients=clients):
                waiting = [asked for asked in self.waiting() if asked.step.client in clients]
                await self.wait_for(waiting, ANSWER_TIMEOUT_S)
                return None

    async def ask(self, step: Ask) -> Asked:
        connection = self.connections.get(step.connection)
        if connection is None:
            connection = await _Connection.open(self.transcript.target, self.learn_id)
            self.connections[step.connection] = connection
        request = await self.resolve(step.request)
        asked = Asked(step, step.version(self.era))
        connection.send(asked, request)
        await self.wait_for([asked], ANSWER_TIMEOUT_S if step.wait else SETTLE_S)
        return asked

    def waiting(self) -> list[Asked]:
        return [
            seen for seen in self.transcript.seen if isinstance(seen, Asked) and not seen.is_answered.is_set()
        ]

    async def wait_for(self, seen: Iterable[Any], timeout_s: float) -> None:
        answers = [asked.is_answered.wait() for asked in seen if isinstance(asked, Asked)]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*answers), timeout_s)

    def learn_id(self, asked: Asked) -> None:
        """Keep the member id that an answer gives to its client."""
        answer = asked.answer
        if not isinstance(answer, JoinGroupResponse):
            return
        gives = {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED}
        if not asked.step.request.member_id:
            gives.add(ErrorCode.FENCED_INSTANCE_ID)  # it had become a member, until a second one came
        if answer.error_code in gives:
            ids = self.transcript.ids.setdefault(asked.step.client, [])
            if answer.member_id not in ids:
                ids.append(answer.member_id)

    async def resolve(self, value: Any) -> Any:
        """`value` with this server's ids, and the group's name, where the history has symbols."""
        if isinstance(value, Id):
            return await self.member_id(value)
        if isinstance(value, str):
            return value.replace(GROUP, self.transcript.group)
        if isinstance(value, tuple):
            return tuple([await self.resolve(item) for item in value])
        if not hasattr(value, "__dataclass_fields__"):
            return value
        changes = {
            each.name: await self.resolve(getattr(value, each.name)) for each in dataclasses.fields(value)
        }
        if isinstance(value, (OffsetCommitRequestTopic, OffsetFetchRequestTopics)):
            changes["topic_id"] = self.transcript.target.topic_ids.get(value.name, UNKNOWN_TOPIC_ID)
        return dataclasses.replace(value, **changes)

    async def member_id(self, id: Id) -> str:
        ids = self.transcript.ids.setdefault(id.owner, [])
        if len(ids) < max(id.number, 1):
            await self.wait_for([a for a in self.waiting() if a.step.client == id.owner], ANSWER_TIMEOUT_S)
        return ids[id.number - 1] if len(ids) >= max(id.number, 1) else f"{id.owner} got no id"

    async def close(self) -> None:
        for connection in self.connections.values():
            await connection.close()


class _Connection:
    """Requests go out in order, and their answers come in the same order."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, on_answer: Callable[[Asked], None]
    ) -> None:
        self._writer = writer
        self._on_answer = on_answer
        self._unanswered: deque[Asked] = deque()
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def open(cls, target: Target, on_answer: Callable[[Asked], None]) -> _Connection:
        return cls(*await asyncio.open_connection(target.host, target.port), on_answer)

    def send(self, asked: Asked, request: Any) -> None:
        header = RequestHeader(
            api_key=asked.step.api_key,
            api_version=asked.version,
            correlation_id=len(self._unanswered),
            client_id=asked.step.client,
        )
        frame = encode_request(header, request)
        self._unanswered.append(asked)
        if self._reading.done():
            self._give_up("the connection is closed")
        else:
            self._writer.write(len(frame).to_bytes(4) + frame)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4))
                frame = await reader.readexactly(size)
                asked = self._unanswered.popleft()
                try:
                    asked.answer = decode_response(asked.step.api_key, asked.version, frame)[1]
                except MalformedMessage as error:
                    asked.answer = f"{error}: {frame.hex()}"
                self._on_answer(asked)
                asked.is_answered.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            self._give_up("the connection is closed")

    def _give_up(self, why: str) -> None:
        for asked in self._unanswered:
            asked.answer = why
            asked.is_answered.set()
        self._unanswered.clear()

    async def close(self) -> None:
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
