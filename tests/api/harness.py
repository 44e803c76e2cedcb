"""A broker without a socket: api functions are called directly, over a store in memory and a test's clock.

In a `HeldStore`, writes become durable, or fail, only when the test says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from itertools import count
from typing import Any
from uuid import UUID

from twisted.internet.defer import Deferred, execute, fail
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kshim.answering import Broker
from kshim.answering.replies import Replies
from kshim.callers import Client, RequestContext
from kshim.callers.arrivals import Arrivals
from kshim.callers.once import Once
from kshim.cluster import Cluster, Topic
from kshim.cluster.pause import Pause, no_pause
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.fetching.sessions import FetchSessions
from kshim.producing.appends import ProducerAppends
from kshim.quotas.quotas import Quotas
from kshim.storage.chunk import place
from kshim.storage.interfaces import Appended, Offsets, StorageError
from kshim.storage.memory import MemoryLog, MemoryMetadata, MemoryStore
from kshim.storage.producers import Produced, Producers
from kshim.turns import Turn
from kshim.turns.aside import OURS
from kshim.turns.promise import Promise, run
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread
from schemas.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from schemas.records.batch import Record, decode_header, encode
from schemas.records.compression import Compression

NOW_MS = 1_700_000_000_000
PENDING = object()


class NoGroups:
    """Fails on any group request."""

    def __init__(self) -> None:
        self.deleted: list[str] = []
        """The topics that groups were told to forget."""

    def submit(self, context: RequestContext, request: Any) -> Any:
        raise AssertionError(request)

    def list_groups(self, request: Any) -> Any:
        raise AssertionError(request)

    async def topics_deleted(self, names: Collection[str], pause: Pause = no_pause) -> None:
        self.deleted += names


class NoTransactions:
    """Fails on any request about transactions."""

    async def submit(self, context: RequestContext, request: Any) -> Any:
        raise AssertionError(request)


def advance(broker: Broker, ms: float = 0) -> None:
    """Move the broker's time ahead, and run what is due then; with 0, what is due now."""
    assert isinstance(broker.clock, Clock)
    broker.clock.advance(ms / 1000)


def new_broker(store: Any = None, **config: Any) -> Broker:
    """A started broker; `config` has properties, with "_" for "."."""
    store = store or MemoryStore()
    settings = Config(**config)
    clock = Clock()
    clock.advance(NOW_MS / 1000)
    cluster = Cluster(store.metadata, store.log, settings, random_uuid=uuids())
    started = cluster.start()
    if isinstance(store, HeldStore):
        store.release_all()
    assert result(started) is None
    rounds = Rounds(clock)
    return Broker(
        node_id=settings.node_id,
        config=settings,
        cluster=cluster,
        log=store.log,
        groups=NoGroups(),
        transactions=NoTransactions(),
        clock=clock,
        rounds=rounds,
        producers=ProducerAppends(store.log, settings),
        fetch_sessions=FetchSessions(),
        quotas=Quotas(cluster.client_quotas, settings, clock),
        aside=AtOnce(),
        unread=Unread(clock, rounds),
        once=Once(clock),
        arrivals=Arrivals(clock),
        replies=Replies(cluster.writer),
        wall_clock=clock,
        authorizer=None if cluster.acls is None else cluster.acls.authorizer,
    )


class AtOnce:
    """Does what is to be done aside before it returns, and counts it."""

    def __init__(self) -> None:
        self.count = 0
        self.long_count = 0
        """How many of these may take a second."""

    def run(self, function: Callable[[], Any], client: Endpoint = OURS) -> Deferred[Any]:
        self.count += 1
        return execute(function)

    def run_long(self, function: Callable[[], Any], client: Endpoint = OURS) -> Deferred[Any]:
        self.long_count += 1
        return self.run(function, client)


def uuids() -> Any:
    numbers = count(0x1000)
    return lambda: UUID(int=next(numbers))


HERE = Endpoint("kshim.example", 9092)


def context(version: int, turn: Turn | None = None) -> RequestContext:
    return RequestContext(
        api_version=version,
        client_id="test",
        client_host="/127.0.0.1",
        advertised=HERE,
        turn=turn or Turn(),
        client=Client("/127.0.0.1", Endpoint("127.0.0.1", 51000), HERE),
    )


def ask(function: Any, broker: Broker, request: Any, version: int) -> Any:
    """The answer, which must be there at once."""
    answer = result(function(broker, context(version), request))
    assert answer is not PENDING, "no answer yet"
    return answer


def result(answer: Any) -> Any:
    """The result of a Deferred, PENDING if it has not fired; any other value is returned as it is.
    Raises the error that a Deferred failed with."""
    answer = later(answer)
    if not isinstance(answer, Deferred):
        return answer
    seen: list[Any] = []
    answer.addBoth(seen.append)
    if not seen:
        return PENDING
    if isinstance(seen[0], Failure):
        seen[0].raiseException()
    return seen[0]


def later(answer: Any) -> Any:
    """A Deferred in place of a promise, or of a coroutine that waits or fails."""
    if isinstance(answer, Coroutine):
        try:
            answer = run(answer)
        except Exception:
            return fail()
    return answer.deferred() if isinstance(answer, Promise) else answer


def collect(answer: Any) -> list[Any]:
    """A list that gets the answer once it is there."""
    seen: list[Any] = []
    answer = later(answer)
    if isinstance(answer, Deferred):
        answer.addBoth(seen.append)
    else:
        seen.append(answer)
    return seen


def create(broker: Broker, name: str, partitions: int = 1, **configs: str) -> Topic:
    """Create a topic; `configs` has "_" for "."."""
    from kshim.api.create_topics import create_topics

    items = tuple(
        CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
    )
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=items
    )
    response = ask(create_topics, broker, CreateTopicsRequest(topics=(topic,)), 7)
    assert response.topics[0].error_code == 0, response.topics[0].error_message
    return broker.cluster.topics[name]


def batch(
    *values: bytes,
    key: bytes | None = b"k",
    at_ms: int = NOW_MS,
    producer: tuple[int, int, int] = (-1, -1, -1),
    codec: Compression = Compression.NONE,
) -> bytes:
    """A record batch of these values; producer: id, epoch, base sequence."""
    records = [Record(i, at_ms, key, value) for i, value in enumerate(values or (b"v",))]
    producer_id, epoch, sequence = producer
    return encode(
        records, compression=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )


class HeldStore:
    """A store in memory that holds every write back."""

    def __init__(self) -> None:
        self.writes: list[HeldWrite] = []
        self.log = HeldLog(self.writes)
        self.metadata = HeldMetadata(self.writes)

    def release(self) -> None:
        """Make the oldest write durable."""
        self.writes.pop(0).release()

    def release_all(self) -> None:
        while self.writes:
            self.release()

    def fail(self) -> None:
        """Make the oldest write fail. Later writes to the same partition are lost, and must be made to fail
        too."""
        failed = self.writes.pop(0)
        for write in self.writes:
            write.lost = write.lost or not failed.records.keys().isdisjoint(write.records)
        failed.fail()


class HeldWrite:
    def __init__(self, write: Any, records: Mapping[int, int], produced: Sequence[Produced] = ()) -> None:
        self.write = write
        self.records = records
        self.produced = produced
        self.lost = False
        self.done: Deferred[Any] = Deferred()

    def release(self) -> None:
        self.write().addCallback(self.done.callback)

    def fail(self) -> None:
        self.done.errback(StorageError("the disk is full"))


class HeldLog(MemoryLog):
    def __init__(self, writes: list[HeldWrite]) -> None:
        super().__init__()
        self._writes = writes

    def delete_records(self, partition_no: int, offset: int) -> Deferred[int]:
        held = HeldWrite(lambda: super(HeldLog, self).delete_records(partition_no, offset), {})
        self._writes.append(held)
        return held.done

    def append(self, partition_no: int, batch: Any, **more: Any) -> Deferred[Appended]:
        kept, append = bytes(batch), super().append
        placed = place(kept, self.offsets(partition_no).log_end_offset, 0, None)
        held = HeldWrite(
            lambda: append(partition_no, kept, **more),
            {partition_no: decode_header(kept).records_count},
            placed.produced,
        )
        self._writes.append(held)
        return held.done

    def producers(self, partition_no: int) -> Producers:
        """The producers at the log's end, including held writes, without those lost behind a failure."""
        producers = Producers(super().producers(partition_no).items())
        for write in self._writes:
            if partition_no in write.records and not write.lost:
                producers.replay(write.produced)
        return producers

    def offsets(self, partition_no: int) -> Offsets:
        start, high_watermark, *_ = super().offsets(partition_no)
        held = sum(write.records.get(partition_no, 0) for write in self._writes)
        return Offsets(start, high_watermark, high_watermark + held, high_watermark)


class HeldMetadata(MemoryMetadata):
    def __init__(self, writes: list[HeldWrite]) -> None:
        super().__init__()
        self._writes = writes

    def put(self, changes: Mapping[bytes, bytes | None]) -> Deferred[None]:
        put = super().put
        held = HeldWrite(lambda: put(changes), {})
        self._writes.append(held)
        return held.done
