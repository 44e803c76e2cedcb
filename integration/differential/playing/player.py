"""Play one history against one server, and write down its answers.

Where the history does not wait for a request, it goes on when that request has *come to rest*: it is
answered, or two probes, sent one after the other behind it, came back quickly. A probe is a DescribeGroups of
this history's groups: a server that answers it has finished with everything sent before. So the server's
speed does not matter.

At odd eras the clients are of a software whose heartbeats kshim parks, and send a question behind each
heartbeat, which releases it: a parked heartbeat must get the answer that it would get at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from integration.differential.playing.asking import Connection
from integration.differential.playing.learned import UNKNOWN_TOPIC_ID, Learned
from integration.differential.playing.pace import Pace, short_time_outs_ms, stretched
from integration.differential.playing.settling import Settling
from integration.differential.words.batches import Batch
from integration.differential.words.history import (
    GROUP,
    Answered,
    Ask,
    Epoch,
    Generation,
    HangUp,
    Id,
    NextSequence,
    Pause,
    ProducerId,
    Session,
    SessionEpoch,
    Step,
    TopicId,
)
from kshim.testing.wire import payload
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.message import MalformedMessage
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.create_topics import CreateTopicsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.describe_transactions import DescribeTransactionsRequest
from schemas.messages.end_txn import EndTxnRequest, EndTxnResponse
from schemas.messages.init_producer_id import InitProducerIdResponse
from schemas.messages.join_group import JoinGroupResponse
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.offset_commit import OffsetCommitRequestTopic
from schemas.messages.offset_fetch import OffsetFetchRequestTopics
from schemas.messages.txn_offset_commit import TxnOffsetCommitRequestTopic
from schemas.registry import decode_response

ANSWER_TIMEOUT_S = 6
"""How long to wait for an answer before the history goes on without it."""
REST_S = 0.025
"""Longer than a server gathers records before it writes them (group.coordinator.append.linger.ms)."""
QUICK_S = 0.06
"""A slower probe proves nothing: the server may have been interrupted halfway."""
PROBES = 20
"""After so many the history goes on: the machine is too busy."""
TRIES = 100
"""How often a request is repeated because the last transaction is not quite over."""
TOO_EARLY = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS}
"""Produce below v12 answers NOT_ENOUGH_REPLICAS for CONCURRENT_TRANSACTIONS."""
OF_TRANSACTIONS = {
    ApiKey.PRODUCE,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
}
PATIENT = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.2.0")
BEHIND_A_HEARTBEAT = payload(0, ApiVersionsRequest())
CHANGES = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
}
"""Requests that a server may answer before the change is in force."""


@dataclass(frozen=True)
class Target:
    """Where a history is played."""

    host: str
    port: int
    topic_ids: Mapping[str, UUID]
    """The ids that this server gave to the topics."""
    delay_ms: int = 0
    """The server's delay before the first rebalance of a group (group.initial.rebalance.delay.ms)."""
    newest: Mapping[int, int] = field(default_factory=dict)
    """For each API the newest version that both servers announce; clients use none above it."""


@dataclass
class Asked:
    """A request as it was sent, and its answer: a response, or a text that says why there is none."""

    number: int
    step: Ask
    version: int
    request: Any
    answer: Any = None
    tries: int = 0
    is_answered: asyncio.Event = field(default_factory=asyncio.Event)

    def take_answer(self, answer: Any) -> None:
        self.answer = answer
        self.is_answered.set()


@dataclass
class Transcript:
    """The record of one server in one history."""

    target: Target
    group: str
    began_s: float = 0
    ended_s: float = 0
    """This and `began_s` are times of the event loop's clock."""
    seen: list[Asked | frozenset[str] | None] = field(default_factory=list)
    """For each step an Asked, or the connections that waited at a pause."""
    given: dict[str, dict[str, int]] = field(default_factory=dict)
    """Every client's member ids, each with the step that asked for it."""
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Every producer's id and epoch."""
    generations: dict[str, int] = field(default_factory=dict)
    learned: Learned = field(default_factory=Learned)
    """The other ids that the server gave."""

    def ids(self, client: str) -> list[str]:
        """The client's member ids, in the order in which it asked for them."""
        given = self.given.get(client, {})
        return sorted(given, key=given.__getitem__)


async def play(
    steps: Sequence[Step],
    era: int,
    group: str,
    target: Target,
    times: int = 1,
    settling: Settling | None = None,
) -> Transcript:
    """Play all steps in order, with all times multiplied by `times`, until everything is at rest.

    settling: the server's, for histories that change topics or configs.

    Raises TooLate as soon as the play does not keep pace with the time-outs.
    """
    loop = asyncio.get_running_loop()
    pace = Pace((time_out * times for time_out in short_time_outs_ms(steps)), target.delay_ms)
    transcript = Transcript(target, group, began_s=loop.time())
    player = _Player(transcript, era, pace, ANSWER_TIMEOUT_S * times, settling)
    try:
        for step in stretched(steps, times):
            pace.begin(loop.time())
            player.transcript.seen.append(await player.take(step))
            pace.check(loop.time())
        await player.rest()
        pace.check(loop.time())
    finally:
        await player.tidy_up()
        player.close()
        player.transcript.ended_s = loop.time()
    return player.transcript


class _Player:
    def __init__(
        self,
        transcript: Transcript,
        era: int,
        pace: Pace,
        answer_timeout_s: float,
        settling: Settling | None,
    ) -> None:
        self.transcript = transcript
        self.settling = settling
        self.era = era
        self.pace = pace
        self.answer_timeout_s = answer_timeout_s
        self.connections: dict[str, Connection] = {}
        self.given_up: list[Connection] = []
        self.unanswered: list[Asked] = []
        self.groups: set[str] = {transcript.group}
        self.prober: Connection | None = None

    @property
    def is_patient(self) -> bool:
        """True if the clients can wait for the answers to their heartbeats."""
        return self.era % 2 == 1

    async def take(self, step: Step) -> Asked | frozenset[str] | None:
        match step:
            case Ask():
                return await self.ask(step)
            case Pause(ms=0):
                await self.rest()
                return frozenset(asked.step.connection for asked in self.waiting())
            case Pause(ms=ms):
                await asyncio.sleep(ms / 1000)
                self.pace.pause(ms)
                return frozenset(asked.step.connection for asked in self.waiting())
            case Answered(clients=clients):
                asked = [asked for asked in self.waiting() if asked.step.client in clients]
                await self.wait_for(asked, self.answer_timeout_s)
                self.pace.forget()
            case HangUp(connection=name):
                if connection := self.connections.pop(name, None):
                    connection.close()
        return None

    async def ask(self, step: Ask) -> Asked:
        connection = self.connections.get(step.connection)
        if connection is None:
            connection = await Connection.open(self.transcript.target)
            self.connections[step.connection] = connection
            if self.is_patient:
                await connection.ask(3, PATIENT)
        request = await self.resolve(step.request)
        self.groups |= _groups(request)
        version = step.version(self.era)
        version = min(version, self.transcript.target.newest.get(step.api_key, version))
        asked = Asked(len(self.transcript.seen), step, version, request)
        frame = payload(asked.version, request, step.client, asked.number)
        self.unanswered.append(asked)

        def send() -> None:
            connection.send(frame[: len(frame) - step.cut], take)
            if self.is_patient and step.api_key is ApiKey.HEARTBEAT:
                connection.send(BEHIND_A_HEARTBEAT, lambda _: None)

        def take(answer: bytes | str) -> None:
            if step.api_key in OF_TRANSACTIONS and self.is_too_early(asked, answer):
                asyncio.get_running_loop().call_later(REST_S, send)
            else:
                self.take_answer(asked, answer)

        send()
        if step.wait:
            await self.wait_for([asked], self.answer_timeout_s)
            if step.api_key in CHANGES | {ApiKey.PRODUCE} and not asked.is_answered.is_set():
                # Apache Kafka never answers it, nor any request behind it
                self.given_up.append(self.connections.pop(step.connection))
        else:
            await self.rest()
        if isinstance(request, EndTxnRequest):
            await self.rest_of_transaction(request.transactional_id)
        if step.api_key in CHANGES and self.settling is not None:
            await self.settling.settle()
        if isinstance(request, CreateTopicsRequest):
            await self.learn_topics(topic.name for topic in request.topics)
        return asked

    async def learn_topics(self, names: Iterable[str]) -> None:
        """Ask for the ids of topics that may have been created."""
        topics = tuple(MetadataRequestTopic(name=name, topic_id=UUID(int=0)) for name in dict.fromkeys(names))
        asked = MetadataRequest(
            topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        told = await (await self.probing()).ask(12, asked)
        for topic in told.topics:
            self.transcript.learned.topic(topic.name, topic.topic_id)

    async def tidy_up(self) -> None:
        """Delete the topics of this history."""
        if names := list(self.transcript.learned.topics):
            topics = tuple(DeleteTopicState(name=name, topic_id=UUID(int=0)) for name in names)
            asked = DeleteTopicsRequest(topics=topics, topic_names=(), timeout_ms=1000)
            await (await self.probing()).ask(6, asked)

    async def rest_of_transaction(self, transactional_id: str) -> None:
        """Wait until the markers of an ended transaction are written."""
        request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
        connection = await self.probing()
        for _ in range(TRIES):
            (told,) = (await connection.ask(0, request)).transaction_states
            if told.transaction_state not in ("PrepareCommit", "PrepareAbort"):
                return
            await asyncio.sleep(REST_S)

    def take_answer(self, asked: Asked, answer: bytes | str) -> None:
        if isinstance(answer, str):
            asked.take_answer(answer)
            return
        try:
            asked.take_answer(decode_response(asked.step.api_key, asked.version, answer)[1])
        except MalformedMessage as error:
            asked.take_answer(f"{error}: {answer.hex()}")
        self.learn(asked)

    def is_too_early(self, asked: Asked, answer: bytes | str) -> bool:
        """True if the last transaction is still ending. Clients then ask again."""
        if isinstance(answer, str) or asked.tries == TRIES:
            return False
        asked.tries += 1
        response = decode_response(asked.step.api_key, asked.version, answer)[1]
        return not TOO_EARLY.isdisjoint(errors(response))

    def waiting(self) -> list[Asked]:
        self.unanswered = [asked for asked in self.unanswered if not asked.is_answered.is_set()]
        return self.unanswered

    async def wait_for(self, some: Iterable[Asked], timeout_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(asked.is_answered.wait() for asked in some)), timeout_s)

    async def rest(self) -> None:
        """Wait until everything is answered or has come to rest."""
        quick = 0
        for _ in range(PROBES):
            waiting = list(self.waiting())
            await self.wait_for(waiting, REST_S)
            if not self.waiting() or quick == 2:
                return
            is_quick = await self.probe() < QUICK_S
            quick = quick + 1 if is_quick and len(self.waiting()) == len(waiting) else 0

    async def probe(self) -> float:
        """The seconds that it took to describe all groups."""
        connection = await self.probing()
        loop = asyncio.get_running_loop()
        began = loop.time()
        await connection.ask(0, DescribeGroupsRequest(groups=tuple(self.groups)))
        return loop.time() - began

    async def probing(self) -> Connection:
        if self.prober is None:
            self.prober = await Connection.open(self.transcript.target)
        return self.prober

    def learn(self, asked: Asked) -> None:
        """Keep the ids, generation and epoch that an answer gives to its client."""
        answer = asked.answer
        if isinstance(answer, (InitProducerIdResponse, EndTxnResponse)) and answer.producer_id >= 0:
            self.transcript.producers[asked.step.client] = answer.producer_id, answer.producer_epoch
            self.transcript.learned.producer(answer.producer_id)
        self.transcript.learned.answer(asked.step.client, asked.request, answer)
        if not isinstance(answer, JoinGroupResponse):
            return
        if answer.error_code == ErrorCode.NONE:
            self.transcript.generations[asked.step.client] = answer.generation_id
        gives = {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED}
        if not asked.step.request.member_id:
            gives.add(ErrorCode.FENCED_INSTANCE_ID)  # it became a member, and was then fenced by a second one
        if answer.error_code in gives:
            self.transcript.given.setdefault(asked.step.client, {}).setdefault(answer.member_id, asked.number)

    async def resolve(self, value: Any) -> Any:
        """`value` with its symbols replaced by this server's ids and by the group's name."""
        if isinstance(value, Id):
            return await self.member_id(value)
        if isinstance(value, Generation):
            return self.transcript.generations.get(value.owner, 0) + value.later
        if isinstance(value, ProducerId):
            return self.transcript.producers.get(value.owner, (-1, -1))[0]
        if isinstance(value, Epoch):
            return self.transcript.producers.get(value.owner, (-1, -1))[1] + value.later
        if isinstance(value, (TopicId, NextSequence, Session, SessionEpoch)):
            return self.transcript.learned.given(value, self.transcript.group, self.transcript.producers)
        if isinstance(value, str):
            return value.replace(GROUP, self.transcript.group)
        if isinstance(value, tuple):
            return tuple([await self.resolve(item) for item in value])
        if not hasattr(value, "__dataclass_fields__"):
            return value
        changes = {
            each.name: await self.resolve(getattr(value, each.name)) for each in dataclasses.fields(value)
        }
        of_offsets = (OffsetCommitRequestTopic, OffsetFetchRequestTopics, TxnOffsetCommitRequestTopic)
        if isinstance(value, of_offsets) and changes["name"]:
            changes["topic_id"] = self.topic_id(changes["name"])
        resolved = dataclasses.replace(value, **changes)
        return resolved.encoded() if isinstance(resolved, Batch) else resolved

    def topic_id(self, name: str) -> UUID:
        own = self.transcript.learned.topics.get(name, [UNKNOWN_TOPIC_ID])
        return self.transcript.target.topic_ids.get(name, own[-1])

    async def member_id(self, id: Id) -> str:
        least = max(id.number, 1)
        if len(self.transcript.ids(id.owner)) < least:
            await self.rest()
        ids = self.transcript.ids(id.owner)
        return ids[id.number - 1] if len(ids) >= least else f"{id.owner} got no id"

    def close(self) -> None:
        for connection in (*self.connections.values(), *self.given_up, self.prober):
            if connection is not None:
                connection.close()


def errors(value: Any) -> Iterator[int]:
    """All error codes in a response."""
    if isinstance(value, tuple):
        for item in value:
            yield from errors(item)
    elif hasattr(value, "__dataclass_fields__"):
        for each in dataclasses.fields(value):
            if each.name.endswith("error_code"):
                yield getattr(value, each.name)
            else:
                yield from errors(getattr(value, each.name))


def _groups(request: Any) -> set[str]:
    group_id = getattr(request, "group_id", None)
    return {group_id} if group_id else set()
