"""An ordinary client in a separate process. It sends heartbeats, commits offsets, produces and fetches small
records, and measures how long it waits for each answer.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from integration.hostile.processor import Times, stolen_s, times
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.messages.sync_group import SyncGroupRequest
from schemas.records.batch import Record, encode

TOPIC = GROUP = "victim"
PAUSE_S = 0.002
PATIENCE_S = 15
"""How long the victim waits for one answer."""
START_TIMEOUT_S = 30
SESSION_TIMEOUT_MS = 120_000
DISK_MS = 1000
"""The longest that the disk may delay a commit. The server computes nothing meanwhile."""
FETCH_BYTES = 1 << 20
WIDE_REQUEST = MetadataRequest(
    topics=tuple(MetadataRequestTopic(name=f"unknown-{number}") for number in range(2_500)),
    allow_auto_topic_creation=False,
)
"""A request so large that the server reads and writes it aside."""


class Wait(NamedTuple):
    """The victim's wait for the answer to one request."""

    request: str
    began_s: float
    ended_s: float
    starved_s: float = 0
    """How long other work kept the server or the victim from a processor meanwhile."""
    ran_s: float = 0
    """How long the server computed meanwhile."""

    @property
    def ms(self) -> float:
        return (self.ended_s - self.began_s) * 1000

    @property
    def own_ms(self) -> float:
        """The server's processor time, plus the rest of the wait beyond DISK_MS.

        Time in which other work had the processors does not count.
        """
        ms = max(0, self.ms - self.starved_s * 1000)
        ran_ms = min(ms, self.ran_s * 1000)
        return ran_ms + max(0, ms - ran_ms - DISK_MS)


@dataclass
class Account:
    """The victim's report."""

    waits: list[Wait] = field(default_factory=list)
    acknowledged: dict[int, bytes] = field(default_factory=dict)
    """The values of acknowledged records, by offset."""
    failures: list[str] = field(default_factory=list)

    def worst(self, since_s: float, until_s: float, length_ms: Callable[[Wait], float]) -> Wait:
        """The longest of the waits that were, at least in part, between these times."""
        found = [wait for wait in self.waits if wait.ended_s >= since_s and wait.began_s <= until_s]
        return max(found, key=length_ms, default=Wait("no request", since_s, until_s))

    def worst_within_ms(self, since_s: float, until_s: float, length_ms: Callable[[Wait], float]) -> float:
        """The length of the longest part of a wait between these times."""
        parts = (
            1000 * (min(wait.ended_s, until_s) - max(wait.began_s, since_s)) - (wait.ms - length_ms(wait))
            for wait in self.waits
        )
        return max((0, *parts))

    def baseline_ms(self, before_s: float, length_ms: Callable[[Wait], float]) -> float:
        """The longest of the waits that ended before `before_s`."""
        return max((length_ms(wait) for wait in self.waits if wait.ended_s < before_s), default=0)

    def count(self, since_s: float, until_s: float) -> int:
        return sum(since_s <= wait.began_s <= until_s for wait in self.waits)


class Refused(Exception):
    """The server has answered with an error code."""


class _Client:
    """The victim's connection, and its requests."""

    def __init__(self, host: str, port: int, server_pid: int, account: Account, *, asks_wide: bool) -> None:
        self._asks_wide = asks_wide
        self._wire = Wire(host, port, timeout_s=PATIENCE_S)
        self._server_pid = server_pid
        self._account = account
        self._create_topic()
        self._join()

    def close(self) -> None:
        self._wire.close()

    def work(self) -> None:
        """Send each kind of request once. Raises Refused, OSError."""
        number = len(self._account.acknowledged)
        self._heartbeat()
        self._produce(f"record {number}".encode())
        self._fetch()
        self._commit()
        if self._asks_wide:
            self._ask(9, WIDE_REQUEST, lambda response: int(not response.brokers))

    def _ask(self, version: int, request: Any, error_code: Callable[[Any], int]) -> Any:
        before = self._times()
        began_s = time.monotonic()
        name = type(request).__name__.removesuffix("Request")
        try:
            response = self._wire.ask(version, request)
        finally:
            ended_s = time.monotonic()
            after = self._times()
            starved_s, ran_s = max(0, after.starved_s - before.starved_s), max(0, after.ran_s - before.ran_s)
            self._account.waits.append(Wait(name, began_s, ended_s, starved_s, ran_s))
        if error := error_code(response):
            raise Refused(f"{name}: {ErrorCode(error).name}")
        return response

    def _times(self) -> Times:
        """The server's times. The time in which the victim starved is added to the server's."""
        server, own = times(self._server_pid), times(os.getpid())
        return Times(server.ran_s, stolen_s() + server.starved_s + own.starved_s)

    def _create_topic(self) -> None:
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=(), configs=())
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=PATIENCE_S * 1000, validate_only=False)
        self._ask(4, request, _fault_in_creation)

    def _join(self) -> None:
        join = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=1000,
            member_id="",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        )
        joined = self._ask(3, join, lambda response: int(response.error_code))
        self._generation_id, self._member_id = joined.generation_id, joined.member_id
        sync = SyncGroupRequest(
            group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id, assignments=()
        )
        self._ask(2, sync, lambda response: int(response.error_code))

    def _heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=self._generation_id, member_id=self._member_id
        )
        self._ask(2, request, lambda response: int(response.error_code))

    def _produce(self, value: bytes) -> None:
        records = encode([Record(0, int(time.time() * 1000), None, value)])
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=PATIENCE_S * 1000,
            topic_data=(TopicProduceData(name=TOPIC, partition_data=(data,)),),
        )
        response = self._ask(7, request, lambda r: int(r.responses[0].partition_responses[0].error_code))
        self._offset = int(response.responses[0].partition_responses[0].base_offset)
        self._account.acknowledged[self._offset] = value

    def _fetch(self) -> None:
        request = fetch_request(self._offset)
        response = self._ask(11, request, lambda r: int(r.responses[0].partitions[0].error_code))
        if not response.responses[0].partitions[0].records:
            raise Refused(f"Fetch: no record at {self._offset}")

    def _commit(self) -> None:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=self._offset, committed_metadata=None
        )
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self._generation_id,
            member_id=self._member_id,
            topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
        )
        self._ask(5, request, lambda response: int(response.topics[0].partitions[0].error_code))


def _fault_in_creation(response: Any) -> int:
    error_code = int(response.topics[0].error_code)
    return 0 if error_code == ErrorCode.TOPIC_ALREADY_EXISTS else error_code


def fetch_request(offset: int) -> FetchRequest:
    """A Fetch (v11) of the victim's records from `offset` on."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    return FetchRequest(
        max_wait_ms=1000,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        isolation_level=0,
        session_id=0,
        topics=(FetchTopic(topic=TOPIC, partitions=(partition,)),),
        forgotten_topics_data=(),
        rack_id="",
    )


def _run(host: str, port: int, server_pid: int, asks_wide: bool, pipe: Connection) -> None:
    """Work as the victim, in its process, until a message asks to stop, or until the server is gone."""
    account = Account()
    client: _Client | None = None
    while not pipe.poll(PAUSE_S):
        try:
            if client is None:
                client = _Client(host, port, server_pid, account, asks_wide=asks_wide)
                pipe.send(None)
            client.work()
        except (Refused, OSError) as error:
            account.failures.append(f"{type(error).__name__}: {error}")
            if client is not None:
                client.close()
            client = None
            if isinstance(error, ConnectionRefusedError):
                break
    pipe.send(account)


class Victim:
    """The victim's process. It begins to work when this object is made."""

    def __init__(self, host: str, port: int, server_pid: int, *, asks_wide: bool = False) -> None:
        """asks_wide: True to send requests, too, that the server reads and writes aside."""
        context = multiprocessing.get_context("spawn")  # a thread of this process may hold a lock
        self._pipe, theirs = context.Pipe()
        arguments = host, port, server_pid, asks_wide, theirs
        self._process = context.Process(target=_run, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(START_TIMEOUT_S):
            self._process.kill()
            raise AssertionError(f"the victim does not work within {START_TIMEOUT_S} s")

    def stop(self) -> Account:
        """Stop the victim after its last request is answered or timed out, and return its account."""
        with contextlib.suppress(OSError):  # it has ended by itself, because the server is gone
            self._pipe.send("stop")
        try:
            while self._pipe.poll(2 * PATIENCE_S):
                found = self._pipe.recv()
                if isinstance(found, Account):
                    return found
            raise AssertionError("the victim gives no account")
        finally:
            self._process.kill()
            self._process.join()
            self._pipe.close()
