"""Appends the entries of a Produce request: the batch of each is checked, prepared, and stored.

Requests with many entries, or in a transaction, are worked off in slices. Before a batch is stored in a
transaction, the coordinator is asked whether the partition is part of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from kshim.callers import RequestContext
from kshim.cluster.leadership import fault_in_leadership
from kshim.producing.preparation import Prepared, Preparing, Ready, prepare
from kshim.producing.record_checks import RecordFault
from kshim.producing.rules import Verification
from kshim.producing.targets import Entry, Found, NotAppended, Target, find
from kshim.producing.transaction_checks import (
    NotAllowed,
    TransactionalBatch,
    Verdicts,
    Verifying,
    verify,
)
from kshim.storage.interfaces import Appended, Log, StorageError
from kshim.turns.promise import settled
from kshim.turns.rounds import Rounds
from kshim.turns.slices import in_pieces, in_slices
from schemas.error_code import ErrorCode
from schemas.messages.produce import ProduceRequest
from schemas.records.batch import HEADER_BYTES, CorruptRecordBatch, decode_header, is_transactional

NO_REPLY, LEADER_ONLY, ALL_IN_SYNC = 0, 1, -1
"""The values of acks."""
ENTRIES_AT_ONCE, FIND_US = 300, 10
NOT_ASKED: Verdicts = {}
NOT_STORED = NotAppended(ErrorCode.KAFKA_STORAGE_ERROR)
FAILED = ErrorCode.UNKNOWN_SERVER_ERROR
"""The error of an entry at which Kafka fails as a whole: all other entries get it, too."""


Outcome = Appended | NotAppended
Begun = Deferred[Appended] | NotAppended
"""An append that has begun, which fires when the batch is durable; or why it has not."""
Begin = Callable[
    ["Producing", RequestContext, ProduceRequest, Sequence[Found], Verdicts], Awaitable[Sequence[Begun]]
]


class Producing(Preparing, Verifying, Protocol):
    """The broker that appends batches to its log."""

    @property
    def log(self) -> Log: ...
    @property
    def rounds(self) -> Rounds: ...


async def append_entries(
    broker: Producing, context: RequestContext, request: ProduceRequest, entries: Sequence[Entry]
) -> Sequence[Outcome]:
    """Append the batch of each entry, and return its outcome when all are durable. The checks of the whole
    request come first.
    """
    try:
        in_transaction = any(is_transactional(data.records or b"") for _, data in entries)
    except CorruptRecordBatch as error:
        return [NotAppended(error.error_code, str(error) or None)] * len(entries)
    if in_transaction and request.transactional_id is None:
        return [NotAppended(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)] * len(entries)
    is_many = len(entries) > ENTRIES_AT_ONCE
    if in_transaction or is_many:
        found = await in_slices(
            broker.rounds, context.turn, entries, partial(find, broker, context), lambda _: FIND_US
        )
    else:
        found = [find(broker, context, entry) for entry in entries]
    if _fails_as_a_whole(found):
        return [NotAppended(FAILED)] * len(found)
    begin = _begin_many if is_many else _begin
    if in_transaction:
        begun = await _begin_in_transaction(broker, context, request, found, begin)
    else:
        begun = await begin(broker, context, request, found, NOT_ASKED)
    outcomes: list[Outcome] = []
    for each in begun:
        try:
            outcomes.append(each if isinstance(each, NotAppended) else await each)
        except StorageError:
            outcomes.append(NOT_STORED)
    return outcomes


def _fails_as_a_whole(found: Iterable[Found]) -> bool:
    refused = [each.error_code for each in found if isinstance(each, NotAppended)]
    return FAILED in refused


async def _begin_in_transaction(
    broker: Producing, context: RequestContext, request: ProduceRequest, found: Sequence[Found], begin: Begin
) -> Sequence[Begun]:
    """Begin to append the targets of a transactional request, if the coordinator allows it."""
    asked = list(_asked(found))
    producers = {(batch.header.producer_id, batch.header.producer_epoch) for batch in asked}
    if len(producers) > 1:
        return [NotAppended(ErrorCode.INVALID_PRODUCER_ID_MAPPING)] * len(found)
    if not asked:
        return await begin(broker, context, request, found, NOT_ASKED)
    ((producer_id, _),) = producers
    transactional_id = request.transactional_id
    assert transactional_id is not None

    async def verify_and_begin() -> Sequence[Begun]:
        verdicts = await verify(broker, context, transactional_id, asked)
        return await begin(broker, context, request, found, verdicts)

    return await broker.producers.in_turn(producer_id, verify_and_begin)


def _asked(found: Iterable[Found]) -> Iterator[TransactionalBatch]:
    """Yield the transactional batches. The coordinator may have to be asked about them."""
    for target in found:
        if not isinstance(target, Target) or len(target.batch) < HEADER_BYTES:
            continue
        topic, partition, batch = target
        header = decode_header(batch)
        if header.is_transactional and header.producer_id >= 0:
            yield TransactionalBatch(topic.name, partition.index, partition.partition_no, header)


async def _begin_many(
    broker: Producing,
    context: RequestContext,
    request: ProduceRequest,
    found: Sequence[Found],
    verdicts: Verdicts,
) -> list[Begun]:
    async def begin(some: Sequence[Found]) -> list[Begun]:
        return await _begin(broker, context, request, some, verdicts)

    return list(await in_pieces(broker.rounds, context.turn, found, begin, ENTRIES_AT_ONCE))


async def _begin(
    broker: Producing,
    context: RequestContext,
    request: ProduceRequest,
    found: Sequence[Found],
    verdicts: Verdicts,
) -> list[Begun]:
    """Prepare the batch of each target, and then begin to append them all."""
    batches = len(found)
    prepared: list[Any] = []
    for each in found:
        if isinstance(each, Target):
            prepared.append(prepare(broker, context, each.topic, each.partition, each.batch, batches))
        else:
            prepared.append(None)
    if context.turn.is_alone:
        prepared = [await settled(each) for each in prepared]
    return [
        _append(broker, request.acks, target, ready, verdicts) if isinstance(target, Target) else target
        for target, ready in zip(found, prepared, strict=True)
    ]


def _append(broker: Producing, acks: int, target: Target, ready: Prepared, verdicts: Verdicts) -> Begun:
    """Append one partition's batch. The checks before that are in Kafka's order."""
    topic, partition, _ = target
    verdict = verdicts.get((topic.name, partition.index)) if verdicts else None
    if isinstance(verdict, NotAllowed):
        return NotAppended(verdict.error_code, verdict.message)
    if acks not in (NO_REPLY, LEADER_ONLY, ALL_IN_SYNC):
        return NotAppended(ErrorCode.INVALID_REQUIRED_ACKS)
    if topic.is_internal:
        return NotAppended(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if (fault := fault_in_leadership(broker.node_id, partition)) is not ErrorCode.NONE:
        return NotAppended(fault, led_elsewhere=partition)
    all_in_sync = len(partition.isr) == len(partition.replicas)
    if acks == ALL_IN_SYNC and not all_in_sync and not _enough_in_sync(broker, target):
        return NotAppended(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert ready is not None, "every target is prepared"
    if isinstance(ready, RecordFault):
        log_start_offset = _log_start_offset(broker, target) if ready.is_whole else -1
        return NotAppended(ready.error_code, ready.message, log_start_offset, ready.record_errors)
    return _append_batch(broker, target, ready, verdict)


def _enough_in_sync(broker: Producing, target: Target) -> bool:
    """True if there are enough in-sync replicas: min.insync.replicas, or all if there are fewer (KIP-966)."""
    config = broker.cluster.log_config(target.topic, broker.node_id)
    return len(target.partition.isr) >= config.min_insync_replicas


def _append_batch(
    broker: Producing, target: Target, ready: Ready, verification: Verification | None
) -> Begun:
    partition = target.partition
    header, batch, now_ms, log_append_time = ready

    def append() -> Deferred[Appended]:
        return broker.log.append(
            partition.partition_no,
            batch,
            leader_epoch=partition.leader_epoch,
            now_ms=now_ms,
            log_append_time=log_append_time,
        )

    if header.producer_id < 0:
        appended: Deferred[Appended] | ErrorCode = append()
    else:
        appended = broker.producers.append(
            partition.partition_no, header, append, now_ms=now_ms, verification=verification
        )
    if isinstance(appended, ErrorCode):
        return NotAppended(appended, log_start_offset=_log_start_offset(broker, target))
    return appended


def _log_start_offset(broker: Producing, target: Target) -> int:
    return broker.log.offsets(target.partition.partition_no).log_start_offset
