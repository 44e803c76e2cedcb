"""Finds the end of a leader epoch's records in a log.

Kafka keeps a file of epochs and their first offsets (KIP-101). kshim reads them from the batches: each has
the epoch of the leader that appended it. Epochs never fall from one batch to the next, so the end of one is
found by bisection, and no file has to be written.
"""

from kshim.storage.chunk import Chunk, Seek
from kshim.storage.interfaces import EpochBoundary
from schemas.records.batch import batches, decode_header

NO_EPOCH = -1


def epoch_boundary(seek: Seek, start: int, end: int, leader_epoch: int) -> EpochBoundary:
    """Find the end of `leader_epoch` between the offsets `start` and `end`."""
    if start == end:
        return EpochBoundary(NO_EPOCH, NO_EPOCH, end)
    before = _chunk_at(seek, start)  # the last chunk found that does not begin with a later epoch
    if _first_epoch(before) > leader_epoch:
        return EpochBoundary(NO_EPOCH, _first_epoch(before), max(start, before.first_offset))
    low, high = before.last_offset + 1, end
    while low < high:
        middle = (low + high) // 2
        chunk = _chunk_at(seek, middle)
        if _first_epoch(chunk) > leader_epoch:
            high = min(middle, max(low, chunk.first_offset))
        else:
            before, low = chunk, chunk.last_offset + 1
    epoch = NO_EPOCH
    for chunk in (before, _chunk_at(seek, low)) if low < end else (before,):
        for batch in batches(chunk.batches):
            header = decode_header(batch)
            if header.partition_leader_epoch > leader_epoch:
                return EpochBoundary(epoch, header.partition_leader_epoch, max(start, header.base_offset))
            epoch = header.partition_leader_epoch
    return EpochBoundary(epoch, NO_EPOCH, end)


def _chunk_at(seek: Seek, offset: int) -> Chunk:
    chunk = seek(offset)
    assert chunk is not None, f"no chunk holds offset {offset}, which is below the end"
    return chunk


def _first_epoch(chunk: Chunk) -> int:
    return decode_header(chunk.batches).partition_leader_epoch
