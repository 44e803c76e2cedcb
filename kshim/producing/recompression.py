"""compression.type: if a topic names a codec, the broker recompresses batches that came with another one."""

from __future__ import annotations

from kshim.cluster.topic_configs import LogConfig
from schemas.error_code import ErrorCode
from schemas.records.batch import CorruptRecordBatch, RecordBatchHeader
from schemas.records.rewriting import recompress


def as_configured(
    header: RecordBatchHeader, batch: memoryview, config: LogConfig, max_bytes: int
) -> memoryview:
    """A validated batch in the codec that the topic names; returned as it is if it has that already.

    Raises CorruptRecordBatch if the batch cannot be decoded, or becomes larger than the topic allows; and
    BatchExpandsTooFar if its records are more than `max_bytes`.
    """
    assert config.compression is not None
    if config.compression == header.compression:
        return batch
    stored = memoryview(recompress(batch, config.compression, config.compression_level, max_bytes=max_bytes))
    if len(stored) > config.max_message_bytes:
        reason = f"a recompressed batch of {len(stored)} bytes, where {config.max_message_bytes} are allowed"
        raise CorruptRecordBatch(ErrorCode.MESSAGE_TOO_LARGE, reason)
    return stored
