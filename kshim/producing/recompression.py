"""Recompresses batches whose codec is not the one that the topic's compression.type names."""

from __future__ import annotations

from kshim.cluster.topic_configs import LogConfig
from schemas.error_code import ErrorCode
from schemas.records.batch import CorruptRecordBatch, RecordBatchHeader
from schemas.records.rewriting import recompress


def as_configured(
    header: RecordBatchHeader, batch: memoryview, config: LogConfig, max_bytes: int
) -> memoryview:
    """Return a validated batch in the topic's codec, unchanged if it already has it.

    Raises CorruptRecordBatch if the batch cannot be decoded, or becomes larger than the topic allows. Raises
    BatchExpandsTooFar if its records have more than `max_bytes`.
    """
    assert config.compression is not None
    if config.compression == header.compression:
        return batch
    stored = memoryview(recompress(batch, config.compression, config.compression_level, max_bytes=max_bytes))
    if len(stored) > config.max_message_bytes:
        reason = f"a recompressed batch of {len(stored)} bytes, where {config.max_message_bytes} are allowed"
        raise CorruptRecordBatch(ErrorCode.MESSAGE_TOO_LARGE, reason)
    return stored
