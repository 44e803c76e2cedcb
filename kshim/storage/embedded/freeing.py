"""Frees chunks: a bounded number in one transaction, because the next append waits for its commit."""

from kshim.storage.embedded.environment import Environment, WriteTransaction
from kshim.storage.embedded.rows import CHUNK_KEY

STEP_CHUNKS = 64


def free_chunks(
    environment: Environment, transaction: WriteTransaction, partition_no: int, end: int | None
) -> int:
    """Delete the oldest chunks of a partition that lie wholly below offset `end`; None deletes any chunk.

    Returns the number of deleted chunks, at most STEP_CHUNKS.
    """
    cursor = transaction.cursor(environment.log)
    cursor.set_range(CHUNK_KEY.pack(partition_no, 0))
    freed = 0
    while freed < STEP_CHUNKS and (key := cursor.key()):
        found_no, last_offset = CHUNK_KEY.unpack(key)
        if found_no != partition_no or (end is not None and last_offset >= end):
            break
        cursor.delete()
        freed += 1
    return freed
