"""Where in a log the records of a leader epoch end.

Kafka keeps a file of epochs and their first offsets (KIP-101). Here they are read from the batches, each of
which has the epoch of the leader that appended it: epochs never fall from one batch to the next, so the place
is found by bisection, nothing is written for it, and nothing can be lost.
"""

from kshim.storage.chunk import Chunk, Seek
from kshim.storage.interfaces import EpochBoundary
from schemas.record_batch import batches, decode_header

NO_EPOCH = -1


def epoch_boundary(seek: Seek, start: int, end: int, leader_epoch: int) -> EpochBoundary:
    """The end of `leader_epoch` between the offsets `start` and `end`."""
    low, high = start, end
    before: Chunk | None = None  # the last that begins with an epoch that is not above
    while low < high:
        middle = (low + high) // 2
        chunk = seek(middle)
        assert chunk is not None, f"no chunk holds offset {middle}, which is below {end}"
        if decode_header(chunk.batches).partition_leader_epoch > leader_epoch:
            high = min(middle, max(low, chunk.first_offset))
        else:
            before, low = chunk, chunk.last_offset + 1
    epoch = NO_EPOCH
    for chunk in (before, seek(low) if low < end else None):
        for batch in batches(chunk.batches) if chunk else ():
            header = decode_header(batch)
            if header.partition_leader_epoch > leader_epoch:
                return EpochBoundary(epoch, header.partition_leader_epoch, max(start, header.base_offset))
            epoch = header.partition_leader_epoch
    return EpochBoundary(epoch, NO_EPOCH, end)
