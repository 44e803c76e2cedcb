"""What a produced batch's records must be like, beyond their batch being whole: timestamps near the clock,
keys for compaction.

Records are decoded only where the header does not settle it: in a compacted topic, in one that limits how old
a timestamp may be, and in a batch whose largest timestamp is ahead of the clock by more than is allowed. Else
they are counted, by their lengths: one that is not there would stop whoever reads the partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kshim.cluster.topic_configs import LONG_MAX, LogConfig
from schemas.error_code import ErrorCode
from schemas.produce import BatchIndexAndErrorMessage
from schemas.record_batch import NO_TIMESTAMP, Record, RecordBatchHeader, check_records, records

_SHOWN_ERRORS = 3


@dataclass(frozen=True, slots=True)
class RecordFault:
    """Why a batch is refused, and which of its records are to blame (KIP-467)."""

    error_code: ErrorCode
    message: str
    record_errors: tuple[BatchIndexAndErrorMessage, ...]


def fault_in_records(
    header: RecordBatchHeader, batch: memoryview, config: LogConfig, now_ms: int, partition: str
) -> RecordFault | None:
    """What is wrong with the records of a validated batch; `partition` is its name in messages.

    Raises CorruptRecordBatch where they are not as many as the header says, or cannot be decoded and must be.
    """
    ahead = header.max_timestamp - now_ms > config.timestamp_after_max_ms
    check_timestamps = not config.log_append_time and (ahead or config.timestamp_before_max_ms != LONG_MAX)
    if not (check_timestamps or config.compacted):
        check_records(header, batch)
        return None
    decoded = list(records(batch))
    late = tuple(_bad_timestamps(decoded, config, now_ms)) if check_timestamps else ()
    if late:
        message = "One or more records have been rejected due to invalid timestamp"
        return RecordFault(ErrorCode.INVALID_TIMESTAMP, message, late)
    keyless = tuple(_without_keys(decoded, partition)) if config.compacted else ()
    return RecordFault(ErrorCode.INVALID_RECORD, _summary(keyless), keyless) if keyless else None


def _bad_timestamps(
    decoded: list[Record], config: LogConfig, now_ms: int
) -> Iterator[BatchIndexAndErrorMessage]:
    earliest, latest = now_ms - config.timestamp_before_max_ms, now_ms + config.timestamp_after_max_ms
    for index, record in enumerate(decoded):
        if record.timestamp_ms != NO_TIMESTAMP and not earliest <= record.timestamp_ms <= latest:
            message = (
                f"Timestamp {record.timestamp_ms} of message with offset {record.offset} is out of range. "
                f"The timestamp should be within [{earliest}, {latest}]"
            )
            yield BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)


def _without_keys(decoded: list[Record], partition: str) -> Iterator[BatchIndexAndErrorMessage]:
    message = f"Compacted topic cannot accept message without key in topic partition {partition}"
    for index, record in enumerate(decoded):
        if record.key is None:
            yield BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)


def _summary(errors: tuple[BatchIndexAndErrorMessage, ...]) -> str:
    shown = ", ".join(
        f"RecordError(batchIndex={error.batch_index}, message='{error.batch_index_error_message}')"
        for error in errors[:_SHOWN_ERRORS]
    )
    return (
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only "
        f"showing the first three errors at most: [{shown}]"
    )
