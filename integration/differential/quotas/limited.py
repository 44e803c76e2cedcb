"""A client with quotas, as a test plays it on one server, and how long Kafka would let it wait.

A throttle time depends on when the server counted a request, which is between its departure and the arrival
of its answer. So it must be one of those that Kafka's rule gives for the times between.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from integration.support.awaiting import wait_until
from integration.support.server import Server
from kshim.testing.wire import Wire, api_key_of, payload, sized
from schemas.error_code import ErrorCode
from schemas.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, encode
from schemas.registry import decode_response

Entity = Sequence[tuple[str, str | None]]
WINDOW_MS, SAMPLE_MS = 10_000, 1_000
"""Ten whole samples count at least."""
APART_MS = 2
"""How far two clocks that are read for one throttle time may be apart."""
ME = "ANONYMOUS"
T = TypeVar("T")
_names = itertools.count()


class Told(NamedTuple):
    """An answer, and between which times it was made, in seconds."""

    answer: Any
    sent_s: float
    heard_s: float
    size: int
    """The bytes of the request, without its size field."""
    answered_size: int


class Client(Wire):
    """A connection with a client id."""

    def __init__(self, server: Server, client_id: str | None) -> None:
        super().__init__(server.host, server.port, timeout_s=30)
        self.client_id = client_id

    def send(self, version: int, request: Any) -> int:
        """Returns the request's size."""
        data = payload(version, request, self.client_id)
        self.sendall(sized(data))
        return len(data)

    def told(self, version: int, request: Any) -> Told:
        sent_s = time.time()
        size = self.send(version, request)
        frame = self.frame()
        answer = decode_response(api_key_of(request), version, frame)[1]
        return Told(answer, sent_s, time.time(), size, len(frame))


@dataclass
class Limited:
    """One server, and those whom it limits."""

    server: Server

    def ask(self, client_id: str | None, version: int, request: Any) -> Told:
        """Ask on a new connection, which is not muted."""
        with Client(self.server, client_id) as client:
            return client.told(version, request)

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic, and wait until it can be used."""
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        (made,) = self.ask("admin", 7, CreateTopicsRequest(topics=(wanted,), timeout_ms=10_000)).answer.topics
        assert not made.error_code, made
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
        wait_until(lambda: not self.ask("admin", 9, asked).answer.topics[0].error_code, 10, f"topic {topic}")

    def set(self, *changes: tuple[Entity, Mapping[str, float | None]]) -> None:
        """Change quotas, and wait until the broker has them: those who see a mark see all before it."""
        mark = f"mark-{time.time_ns()}"
        entity = [("user", ME), ("client-id", mark)]
        self._alter([*changes, (entity, {"request_percentage": 1e-9})])
        asked = FindCoordinatorRequest(key="any")
        wait_until(
            lambda: self.ask(mark, 3, asked).answer.throttle_time_ms > 0, 20, "the quotas are in force"
        )
        self._alter([(entity, {"request_percentage": None})])

    def _alter(self, changes: Iterable[tuple[Entity, Mapping[str, float | None]]]) -> None:
        entries = tuple(
            RequestEntryData(
                entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
                ops=tuple(
                    OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()
                ),
            )
            for entity, quotas in changes
        )
        for done in self.ask("admin", 1, AlterClientQuotasRequest(entries=entries)).answer.entries:
            assert done.error_code == ErrorCode.NONE, done


Both = tuple[Limited, Limited]
"""Apache Kafka and kshim."""


def new_name(prefix: str) -> str:
    """A name that no other test uses."""
    return f"{prefix}-{next(_names)}"


def of_both(servers: Both, play: Callable[[Limited], T]) -> tuple[T, T]:
    """Return the results of `play` for each server."""
    with ThreadPoolExecutor() as threads:
        theirs, ours = threads.map(play, servers)
    return theirs, ours


def same(servers: Both, play: Callable[[Limited], T]) -> T:
    """What `play` returns for both."""
    theirs, ours = of_both(servers, play)
    assert ours == theirs
    return ours


class History:
    """Bytes used under one shared quota within the last ten seconds."""

    def __init__(self) -> None:
        self._first: Told | None = None
        self._sum = 0

    def check(self, told: Told, size: int, per_s: float) -> None:
        """Add a request, and check its throttle time."""
        first = self._first = self._first or told
        self._sum += size
        soonest_ms = max(0, int((told.sent_s - first.heard_s) * 1000)) if told is not first else 0
        latest_ms = int((told.heard_s - first.sent_s) * 1000) + 1 if told is not first else 0
        assert latest_ms < WINDOW_MS, "this machine is too slow"
        expected = {
            max(0, round(self._sum * 1000 / per_s - WINDOW_MS - elapsed_ms % SAMPLE_MS))
            for elapsed_ms in range(soonest_ms, latest_ms + 1)
        }
        near = min(expected, key=lambda each: abs(each - told.answer.throttle_time_ms))
        assert abs(near - told.answer.throttle_time_ms) <= APART_MS, (
            sorted(expected)[:: len(expected)],
            told,
        )
        if told.answer.throttle_time_ms and isinstance(told.answer, FetchResponse):
            self._sum -= size


def producing(topic: str, value: bytes, *, acks: int = 1) -> ProduceRequest:
    records = encode([Record(0, int(time.time() * 1000), None, value)])
    data = (PartitionProduceData(index=0, records=records),)
    return ProduceRequest(
        acks=acks, timeout_ms=10_000, topic_data=(TopicProduceData(name=topic, partition_data=data),)
    )


def fetching(topic: str, *, session_id: int = 0, epoch: int = -1, max_wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=epoch,
        topics=(FetchTopic(topic=topic, partitions=(partition,)),) if epoch < 1 else (),
    )
