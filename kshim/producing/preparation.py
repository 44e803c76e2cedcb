"""Makes a produced batch ready to be appended, aside if that may take long.

A batch's header may announce more than the batch holds, and a small batch may expand to a hundred thousand
times its size. So the first attempt expands only as much as a small batch needs. A batch that needs more is
prepared aside, up to a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from twisted.internet.defer import Deferred

from kshim.callers import RequestContext
from kshim.cluster import Cluster, Partition, Topic
from kshim.cluster.topic_configs import LogConfig
from kshim.producing.recompression import as_configured
from kshim.producing.record_checks import RecordFault, fault_in_records
from kshim.turns.aside import Aside
from schemas.records.batch import BatchExpandsTooFar, CorruptRecordBatch, RecordBatchHeader, validate
from schemas.records.compression import MAX_DECOMPRESSED_BYTES

LIGHT_RECORDS = 20_000
LIGHT_BYTES = 1024 * 1024
"""Most bytes, in all batches of a request together, that are prepared at once: about 10 ms."""
MANY_TIMES = 100
MANY_TIMES_BYTES = 64 * 1024 * 1024


class Preparing(Protocol):
    """The broker that a batch is prepared for."""

    @property
    def node_id(self) -> int: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def aside(self) -> Aside: ...
    def now_ms(self) -> int: ...


class Ready(NamedTuple):
    """A batch ready to be stored, its header as the producer sent it, and the time of its arrival."""

    header: RecordBatchHeader
    batch: memoryview
    now_ms: int
    log_append_time: bool
    """True if the topic's records get the time of the append (message.timestamp.type=LogAppendTime)."""


Prepared: TypeAlias = Ready | RecordFault | None
"""A batch that is ready, or why it is refused; None for an entry without a batch."""


def most_expanded_bytes(header: RecordBatchHeader, config: LogConfig) -> int:
    """Return how many bytes a batch's records may have when they are decompressed.

    This is the larger of a hundred times the batch, up to 64 MiB, and 16 times the topic's limit for a batch,
    as producers limit batches before they compress them. It is never more than `MAX_DECOMPRESSED_BYTES`.
    """
    most = max(min(MANY_TIMES * header.size, MANY_TIMES_BYTES), 16 * config.max_message_bytes)
    return min(most, MAX_DECOMPRESSED_BYTES)


def prepare(
    broker: Preparing,
    context: RequestContext,
    topic: Topic,
    partition: Partition,
    batch: memoryview,
    batches: int,
) -> Prepared | Deferred[Prepared]:
    """Return the batch ready to be stored, or why it is refused.

    batches: how many batches the request has. If one of them is prepared aside, no other request of the
    connection is answered meanwhile.
    """
    config, now_ms = broker.cluster.log_config(topic, broker.node_id), broker.now_ms()
    place = topic.name, partition.index
    try:
        header = validate(batch, max_batch_bytes=config.max_message_bytes)
        if header.records_count <= LIGHT_RECORDS // batches:
            return _prepared(header, batch, config, now_ms, place, LIGHT_BYTES // batches)
    except BatchExpandsTooFar:
        pass
    except CorruptRecordBatch as error:
        return _fault(error)
    context.turn.is_alone = True
    prepared = partial(_prepared, header, batch, config, now_ms, place)
    return broker.aside.run(partial(_within, most_expanded_bytes(header, config), prepared), context.address)


def _prepared(
    header: RecordBatchHeader,
    batch: memoryview,
    config: LogConfig,
    now_ms: int,
    place: tuple[str, int],
    max_bytes: int,
) -> Prepared:
    """Check and convert a batch. Raises CorruptRecordBatch, and BatchExpandsTooFar beyond `max_bytes`."""
    fault = fault_in_records(header, batch, config, now_ms, place, max_bytes)
    if fault is not None:
        return fault
    if config.compression is not None:
        batch = as_configured(header, batch, config, max_bytes)
    return Ready(header, batch, now_ms, config.log_append_time)


def _within(max_bytes: int, prepared: Callable[[int], Prepared]) -> Prepared:
    """Return `prepared(max_bytes)`, or why the batch is refused if it raises."""
    try:
        return prepared(max_bytes)
    except CorruptRecordBatch as error:
        return _fault(error)


def _fault(error: CorruptRecordBatch) -> RecordFault:
    return RecordFault(error.error_code, str(error), is_whole=error.is_whole)
