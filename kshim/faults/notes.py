"""Notes what the members of groups are given and what they commit, request by request, once somebody asks.

A note is taken where a request is performed, so it shows what the server knows: a commit whose answer a fault
takes away is noted like any other. The listener names the client: who wants to tell several programs apart
gives each a listener of its own.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Generic, TypedDict, TypeVar
from uuid import UUID

from kshim.callers import Client
from kshim.network.dispatch import LIGHT_ELEMENTS, Reply
from kshim.turns import Turn
from kshim.turns.promise import Promise, run
from schemas.api_key import ApiKey
from schemas.consumer_protocol import decode_assignment, partitions_of
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, TooManyElements
from schemas.records import batch
from schemas.registry import decode_request, decode_response

MOST_NOTES: Final = 500_000
"""The oldest notes are forgotten beyond these."""
MOST_IN_ANSWER: Final = 5_000

Note = dict[str, Any]
"""One note: `what`, and what else that kind has. JSON values only."""


class NotedRequests(TypedDict):
    """The answer of the command `noted-requests`."""

    notes: Sequence[Note]
    last: int
    """The number after which the next call goes on."""
    more: bool
    """True if there are more notes now."""


B = TypeVar("B")
Answering = Callable[..., Reply | Promise[Reply]]


class Notes(Generic[B]):
    """Answers requests by another function, and notes what they did."""

    def __init__(self, answer: Answering, now_s: Callable[[], float] = time.time) -> None:
        """answer: answers a request, with the arguments and results of `dispatch.answer`."""
        self._answer = answer
        self._now_s = now_s
        self._notes: deque[Note] = deque(maxlen=MOST_NOTES)
        self._count = 0

    def after(self, number: int) -> NotedRequests:
        """The notes after the one with this number; 0 for all."""
        first = self._count - len(self._notes)
        skipped = max(0, number - first)
        notes = list(islice(self._notes, skipped, skipped + MOST_IN_ANSWER))
        last = max(number, first) + len(notes)
        return {"notes": notes, "last": last, "more": last < self._count}

    def answer(
        self,
        broker: B,
        frame: bytes | bytearray,
        client: Client,
        turn: Turn,
        decoded: tuple[RequestHeader, Any] | None = None,
    ) -> Reply | Promise[Reply]:
        """Answer a request, like `dispatch.answer`."""
        found = decoded or _decoded(frame)
        if found is None or found[0].api_key not in _NOTES:
            return self._answer(broker, frame, client, turn, decoded)
        reply = self._answer(broker, frame, client, turn, found)
        if isinstance(reply, Promise):
            if found[0].api_key == ApiKey.JOIN_GROUP:
                self._keep(client, found[0], _joins(found[1]))
            return run(self._later(broker, client, found, reply))
        self._take(broker, client, found, reply)
        return reply

    async def _later(
        self, broker: B, client: Client, asked: tuple[RequestHeader, Any], promise: Promise[Reply]
    ) -> Reply:
        reply = await promise
        self._take(broker, client, asked, reply)
        return reply

    def _take(self, broker: B, client: Client, asked: tuple[RequestHeader, Any], reply: Reply) -> None:
        header, request = asked
        if reply is None:
            return
        key, version = header.api_key, header.api_version
        response: Any = decode_response(key, version, bytes(reply))[1]
        for note in _NOTES[key](_Names(broker), request, response):
            self._keep(client, header, note)

    def _keep(self, client: Client, header: RequestHeader, note: Note) -> None:
        at_ms = round(self._now_s() * 1000, 1)
        sender = {"client": header.client_id or "", "address": str(client.address)}
        self._notes.append({"at_ms": at_ms, "listener": client.listener_name, **sender, **note})
        self._count += 1


def _decoded(frame: bytes | bytearray) -> tuple[RequestHeader, Any] | None:
    """The header and the request; None for a frame that is malformed, or that is decoded aside."""
    try:
        return decode_request(frame, LIGHT_ELEMENTS)
    except (MalformedMessage, TooManyElements):
        return None


class _Names:
    """The names of topics, which newer requests name by their ids."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker

    def of(self, name: str, topic_id: UUID | None) -> str:
        if name:
            return name
        topic = self._broker.cluster.topic_by_id(topic_id)
        return "" if topic is None else str(topic.name)


# ---- what is noted, by API


def _fetched(names: _Names, request: Any, response: Any) -> Iterator[Note]:
    for topic in response.responses:
        name = names.of(topic.topic, topic.topic_id)
        for partition in topic.partitions:
            if headers := list(map(batch.decode_header, batch.batches(bytes(partition.records or b"")))):
                yield {
                    "what": "fetched",
                    "topic": name,
                    "partition": partition.partition_index,
                    "first": headers[0].base_offset,
                    "last": headers[-1].last_offset,
                }


def _committed(names: _Names, request: Any, response: Any) -> Iterator[Note]:
    answers = [each for topic in response.topics for each in topic.partitions]
    asked = [(topic, each) for topic in request.topics for each in topic.partitions]
    for (topic, partition), answer in zip(asked, answers, strict=True):
        yield {
            "what": "committed",
            "group": request.group_id,
            "member": request.member_id,
            "topic": names.of(topic.name, topic.topic_id),
            "partition": partition.partition_index,
            "offset": partition.committed_offset,
            "error": _name(answer.error_code),
            "transaction": getattr(request, "transactional_id", ""),
        }


def _begins(names: _Names, request: Any, response: Any) -> Iterator[Note]:
    """Where members are told to begin."""
    groups = response.groups or (response,)
    for group in groups:
        for topic in group.topics:
            name = names.of(topic.name, getattr(topic, "topic_id", None))
            for partition in topic.partitions:
                yield {
                    "what": "begins",
                    "group": getattr(group, "group_id", request.group_id),
                    "topic": name,
                    "partition": partition.partition_index,
                    "offset": partition.committed_offset,
                    "error": _name(partition.error_code or group.error_code),
                }


def _joins(request: Any) -> Note:
    """A member that waits for others to join. A static one has an id already, which it does not know yet."""
    return {
        "what": "joins",
        "group": request.group_id,
        "member": request.member_id,
        "instance": request.group_instance_id,
    }


def _joined(names: _Names, request: Any, response: Any) -> Iterator[Note]:
    yield {
        "what": "joined",
        "group": request.group_id,
        "member": response.member_id or request.member_id,
        "instance": request.group_instance_id,
        "error": _name(response.error_code),
    }


def _synced(names: _Names, request: Any, response: Any) -> Iterator[Note]:
    try:
        assignment = decode_assignment(response.assignment) if response.assignment else None
    except MalformedMessage:
        return
    found = () if assignment is None else sorted(partitions_of(assignment.assigned_partitions))
    yield {
        "what": "assigned",
        "group": request.group_id,
        "member": request.member_id,
        "partitions": [[topic, partition] for topic, partition in found],
        "error": _name(response.error_code),
    }


def _beaten(names: _Names, request: Any, response: Any) -> Iterator[Note]:
    """A heartbeat is noted if it fails."""
    if response.error_code != ErrorCode.NONE:
        yield {
            "what": "heartbeat",
            "group": request.group_id,
            "member": request.member_id,
            "error": _name(response.error_code),
        }


def _consumer_beaten(names: _Names, request: Any, response: Any) -> Iterator[Note]:
    """A heartbeat of the consumer protocol is noted if it joins, gets an assignment, or fails."""
    member = response.member_id or request.member_id
    common = {"group": request.group_id, "member": member, "error": _name(response.error_code)}
    if request.member_epoch == 0:
        yield {"what": "joined", "instance": request.instance_id, **common}
    if response.assignment is not None:
        found = [
            [names.of("", each.topic_id), partition]
            for each in response.assignment.topic_partitions
            for partition in each.partitions
        ]
        yield {"what": "assigned", "partitions": found, **common}
    elif response.error_code != ErrorCode.NONE:
        yield {"what": "heartbeat", **common}


def _producer(names: _Names, request: Any, response: Any) -> Iterator[Note]:
    if request.transactional_id:
        yield {
            "what": "producer",
            "transaction": request.transactional_id,
            "producer_id": response.producer_id,
            "epoch": response.producer_epoch,
            "error": _name(response.error_code),
        }


def _ended(names: _Names, request: Any, response: Any) -> Iterator[Note]:
    yield {
        "what": "ended",
        "transaction": request.transactional_id,
        "is_commit": request.committed,
        "error": _name(response.error_code),
    }


def _name(error_code: int) -> str:
    """The name of an error; empty for none."""
    return "" if error_code == ErrorCode.NONE else ErrorCode(error_code).name


_NOTES: Final[Mapping[int, Callable[[_Names, Any, Any], Iterator[Note]]]] = {
    ApiKey.FETCH: _fetched,
    ApiKey.OFFSET_COMMIT: _committed,
    ApiKey.TXN_OFFSET_COMMIT: _committed,
    ApiKey.OFFSET_FETCH: _begins,
    ApiKey.JOIN_GROUP: _joined,
    ApiKey.SYNC_GROUP: _synced,
    ApiKey.HEARTBEAT: _beaten,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _consumer_beaten,
    ApiKey.INIT_PRODUCER_ID: _producer,
    ApiKey.END_TXN: _ended,
}
