"""Checks the records of a whole batch: timestamps near the clock, and keys in a compacted topic.

Records are decoded only if the header does not decide the matter: in a compacted topic, in a topic that
limits how old a timestamp may be, in a batch whose largest timestamp is too far ahead of the clock, and in a
batch that its producer has marked LogAppendTime, if Kafka would refuse that. Otherwise records are only
counted, by their lengths, because a missing record would stop every reader of the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from kshim.cluster.topic_configs import LogConfig
from kshim.configs.java import LONG_MAX
from kshim.configs.topics import MAX_RECORD_BYTES
from schemas.error_code import ErrorCode
from schemas.messages.produce import BatchIndexAndErrorMessage
from schemas.records.batch import (
    NO_TIMESTAMP,
    Record,
    RecordBatchHeader,
    TimestampType,
    check_record_sizes,
    check_records,
    records,
)
from schemas.records.compression import Compression

MOST_ERRORS = 10_000
_SHOWN_ERRORS = 3


@dataclass(frozen=True, slots=True)
class RecordFault:
    """The reason why a batch is refused, and the records that are to blame (KIP-467)."""

    error_code: ErrorCode
    message: str
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()
    """The errors of single records, at most MOST_ERRORS."""
    is_whole: bool = True
    """True if the bytes are one intact batch, which is refused for its contents."""


def fault_in_records(
    header: RecordBatchHeader,
    batch: memoryview,
    config: LogConfig,
    now_ms: int,
    place: tuple[str, int],
    max_bytes: int,
) -> RecordFault | None:
    """Return what is wrong with the records of a validated batch, or None.

    place: topic and partition, for messages. Raises CorruptRecordBatch if the header states another number of
    records, or if they must be decoded and cannot be. Raises BatchExpandsTooFar if they have more than
    `max_bytes`.
    """
    if config.max_record_bytes != MAX_RECORD_BYTES and header.compression is not Compression.NONE:
        check_record_sizes(header, batch, config.max_record_bytes, max_bytes=max_bytes)
    ahead = header.max_timestamp - now_ms > config.timestamp_after_max_ms
    check_timestamps = not config.log_append_time and (ahead or config.timestamp_before_max_ms != LONG_MAX)
    is_marked = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    refuses_mark = is_marked and (config.log_append_time or header.max_timestamp == NO_TIMESTAMP)
    if not (check_timestamps or refuses_mark or config.compacted):
        check_records(header, batch, max_bytes=max_bytes)
        return None
    decoded = records(batch, max_bytes=max_bytes)
    faults = list(islice(_faults(decoded, config, now_ms, is_marked, place), MOST_ERRORS))
    for _ in decoded:  # the records after the last fault must be readable, too
        pass
    if not faults:
        return None
    errors = tuple(
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
        for index, _, message in faults
    )
    if any(error is ErrorCode.INVALID_TIMESTAMP for _, error, _ in faults):
        message = "One or more records have been rejected due to invalid timestamp"
        return RecordFault(ErrorCode.INVALID_TIMESTAMP, message, errors)
    return RecordFault(ErrorCode.INVALID_RECORD, _summary(errors), errors)


def _faults(
    decoded: Iterable[Record], config: LogConfig, now_ms: int, is_marked: bool, place: tuple[str, int]
) -> Iterator[tuple[int, ErrorCode, str]]:
    """Yield index, error and message for each faulty record. A missing key comes before a bad timestamp."""
    keyless = f"Compacted topic cannot accept message without key in topic partition {place[0]}-{place[1]}"
    earliest, latest = now_ms - config.timestamp_before_max_ms, now_ms + config.timestamp_after_max_ms
    for index, record in enumerate(decoded):
        timestamp_ms = record.timestamp_ms
        if config.compacted and record.key is None:
            yield index, ErrorCode.INVALID_RECORD, keyless
        elif not config.log_append_time and timestamp_ms != NO_TIMESTAMP:
            if not earliest <= timestamp_ms <= latest:
                message = (
                    f"Timestamp {timestamp_ms} of message with offset {record.offset} is out of range. "
                    f"The timestamp should be within [{earliest}, {latest}]"
                )
                yield index, ErrorCode.INVALID_TIMESTAMP, message
        elif is_marked:
            message = "Producer should not set timestamp type to LogAppendTime."
            yield index, ErrorCode.INVALID_TIMESTAMP, message


def _summary(errors: tuple[BatchIndexAndErrorMessage, ...]) -> str:
    shown = ", ".join(
        f"RecordError(batchIndex={error.batch_index}, message='{error.batch_index_error_message}')"
        for error in errors[:_SHOWN_ERRORS]
    )
    return (
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only "
        f"showing the first three errors at most: [{shown}]"
    )
