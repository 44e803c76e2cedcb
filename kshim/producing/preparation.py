"""Makes a produced batch ready to be appended, aside if that may take long.

A batch may say more than it holds, and a small one may expand to a hundred thousand times its size. So a
first look goes only as far as a small batch needs; what needs more is done aside, up to a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from kshim.callers import RequestContext
from kshim.cluster import Cluster, Partition, Topic
from kshim.cluster.topic_configs import LogConfig
from kshim.producing.recompression import as_configured
from kshim.producing.record_checks import RecordFault, fault_in_records
from kshim.turns.aside import Aside
from kshim.turns.later import Later
from schemas.records.batch import BatchExpandsTooFar, CorruptRecordBatch, RecordBatchHeader, validate
from schemas.records.compression import MAX_DECOMPRESSED_BYTES

LIGHT_RECORDS = 20_000
LIGHT_BYTES = 1024 * 1024
"""What is looked at at once, in all batches of a request together: about 10 ms."""
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
    """A batch as it is to be stored, its header as it was sent, and when it came."""

    header: RecordBatchHeader
    batch: memoryview
    now_ms: int
    log_append_time: bool
    """Whether the topic's timestamps are those of the append."""


Prepared: TypeAlias = Ready | RecordFault | None
"""None stands for an entry without a batch."""


def most_expanded_bytes(header: RecordBatchHeader, config: LogConfig) -> int:
    """How many bytes the records of a batch may be when they are decompressed.

    A hundred times the batch, up to 64 MiB; or 16 times what the topic allows for a batch, as producers limit
    batches before they compress them. In no case more than `MAX_DECOMPRESSED_BYTES`.
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
) -> Later[Prepared]:
    """The batch as it is to be stored, or why it is refused.

    batches: how many the request has; it is answered alone if one is prepared aside.
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
    """Raises CorruptRecordBatch; BatchExpandsTooFar if the records are more than `max_bytes`."""
    fault = fault_in_records(header, batch, config, now_ms, place, max_bytes)
    if fault is not None:
        return fault
    if config.compression is not None:
        batch = as_configured(header, batch, config, max_bytes)
    return Ready(header, batch, now_ms, config.log_append_time)


def _within(max_bytes: int, prepared: Callable[[int], Prepared]) -> Prepared:
    """`prepared(max_bytes)`, or why the batch is refused."""
    try:
        return prepared(max_bytes)
    except CorruptRecordBatch as error:
        return _fault(error)


def _fault(error: CorruptRecordBatch) -> RecordFault:
    return RecordFault(error.error_code, str(error), is_whole=error.is_whole)
