"""Appends the entries of a Produce request: the batch of each is checked, prepared, and stored.

Requests with many entries, or in a transaction, are worked off in slices. Before a batch is stored in a
transaction, the coordinator is asked whether the partition is part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

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
from kshim.storage.interfaces import Appended, Log
from kshim.turns.later import Later, gather, if_not_stored, then
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


class Outcome(Protocol):
    """The outcome of an entry: `Appended` or `NotAppended`."""

    @property
    def log_start_offset(self) -> int: ...


Outcomes = Sequence[Later[Outcome]]
"""The outcome of each entry: a refusal comes at once, the position when the batch is durable."""
_if_not_stored: Callable[[Failure], Outcome] = if_not_stored(lambda: NOT_STORED)


class Producing(Preparing, Verifying, Protocol):
    """The broker that appends batches to its log."""

    @property
    def log(self) -> Log: ...
    @property
    def rounds(self) -> Rounds: ...


def append_entries(
    broker: Producing, context: RequestContext, request: ProduceRequest, entries: Sequence[Entry]
) -> Later[Outcomes]:
    """Append the batch of each entry. The checks of the whole request come first."""
    try:
        in_transaction = any(is_transactional(data.records or b"") for _, data in entries)
    except CorruptRecordBatch as error:
        return [NotAppended(error.error_code, str(error) or None)] * len(entries)
    if in_transaction and request.transactional_id is None:
        return [NotAppended(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)] * len(entries)
    if in_transaction or len(entries) > ENTRIES_AT_ONCE:
        found_later = in_slices(
            broker.rounds, context.turn, entries, partial(find, broker, context), lambda _: FIND_US
        )
        return then(found_later, partial(_append_found, broker, context, request, in_transaction))
    found = [find(broker, context, entry) for entry in entries]
    if _fails_as_a_whole(found):
        return [NotAppended(FAILED)] * len(found)
    return _store_some(broker, context, request, found, NOT_ASKED)


def _fails_as_a_whole(found: Iterable[Found]) -> bool:
    refused = [each.error_code for each in found if isinstance(each, NotAppended)]
    return FAILED in refused


def _append_found(
    broker: Producing,
    context: RequestContext,
    request: ProduceRequest,
    in_transaction: bool,
    found: Sequence[Found],
) -> Later[Outcomes]:
    """Append the targets of a transactional request, or of one with many entries."""
    if _fails_as_a_whole(found):
        return [NotAppended(FAILED)] * len(found)
    asked = list(_asked(found)) if in_transaction else []
    producers = {(batch.header.producer_id, batch.header.producer_epoch) for batch in asked}
    if len(producers) > 1:
        return [NotAppended(ErrorCode.INVALID_PRODUCER_ID_MAPPING)] * len(found)
    store = partial(_store, broker, context, request, found)
    if not asked:
        return store(NOT_ASKED)
    ((producer_id, _),) = producers
    assert request.transactional_id is not None
    ask = partial(verify, broker, context, request.transactional_id, asked)
    return broker.producers.in_turn(producer_id, lambda: then(ask(), store))


def _asked(found: Iterable[Found]) -> Iterator[TransactionalBatch]:
    """Yield the transactional batches. The coordinator may have to be asked about them."""
    for target in found:
        if not isinstance(target, Target) or len(target.batch) < HEADER_BYTES:
            continue
        topic, partition, batch = target
        header = decode_header(batch)
        if header.is_transactional and header.producer_id >= 0:
            yield TransactionalBatch(topic.name, partition.index, partition.partition_no, header)


def _store(
    broker: Producing,
    context: RequestContext,
    request: ProduceRequest,
    found: Sequence[Found],
    verdicts: Verdicts,
) -> Later[Outcomes]:
    """Store the batch of each target. The outcomes come later; if there are many targets, all together."""
    if len(found) <= ENTRIES_AT_ONCE:
        return _store_some(broker, context, request, found, verdicts)

    def store(some: Sequence[Found]) -> Later[Iterable[Outcome]]:
        return then(_store_some(broker, context, request, some, verdicts), _all_known)

    return then(in_pieces(broker.rounds, context.turn, found, store, ENTRIES_AT_ONCE), list)


def _all_known(outcomes: Outcomes) -> Later[Iterable[Outcome]]:
    return gather(outcomes, list)


def _store_some(
    broker: Producing,
    context: RequestContext,
    request: ProduceRequest,
    found: Sequence[Found],
    verdicts: Verdicts,
) -> Later[Outcomes]:
    """Prepare the batch of each target, and then append them."""
    batches = len(found)
    prepared: list[Any] = [
        prepare(broker, context, each.topic, each.partition, each.batch, batches)
        if isinstance(each, Target)
        else None
        for each in found
    ]
    append = partial(_append_all, broker, request, found, verdicts)
    return gather(prepared, append) if context.turn.is_alone else append(prepared)


def _append_all(
    broker: Producing,
    request: ProduceRequest,
    found: Iterable[Found],
    verdicts: Verdicts,
    prepared: Iterable[Prepared],
) -> list[Later[Outcome]]:
    return [
        _append(broker, request.acks, target, ready, verdicts) if isinstance(target, Target) else target
        for target, ready in zip(found, prepared, strict=True)
    ]


def _append(
    broker: Producing, acks: int, target: Target, ready: Prepared, verdicts: Verdicts
) -> Later[Outcome]:
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
) -> Later[Outcome]:
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
    return appended.addErrback(_if_not_stored)


def _log_start_offset(broker: Producing, target: Target) -> int:
    return broker.log.offsets(target.partition.partition_no).log_start_offset
