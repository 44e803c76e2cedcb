"""Frees chunks below the log start offsets, a bounded number in one transaction.

A log start offset is durable before chunks below it are freed, so a restart goes on with the freeing.
"""

from kshim.storage.embedded.environment import Environment, WriteTransaction
from kshim.storage.embedded.freeing import free_chunks
from kshim.storage.embedded.producers import free_aborted
from kshim.storage.embedded.rows import CHUNK_KEY, OFFSET, PARTITION_KEY


class Trimming:
    """The partitions with chunks still to be freed. Only the writer thread uses it, once that runs."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._starts: dict[int, int] = {}
        with environment.read("starts") as transaction:
            chunks = transaction.cursor(environment.log)
            for key, value in transaction.cursor():
                (partition_no,), (start,) = PARTITION_KEY.unpack(key), OFFSET.unpack(value)
                if chunks.set_range(CHUNK_KEY.pack(partition_no, 0)):
                    found_no, last_offset = CHUNK_KEY.unpack(chunks.key())
                    if found_no == partition_no and last_offset < start:
                        self._starts[partition_no] = start

    @property
    def due(self) -> bool:
        return bool(self._starts)

    def add(self, partition_no: int, log_start_offset: int) -> None:
        self._starts[partition_no] = max(log_start_offset, self._starts.get(partition_no, 0))

    def forget(self, partition_no: int) -> None:
        """Drop a partition that is being deleted."""
        self._starts.pop(partition_no, None)

    def step(self) -> None:
        """Free some chunks of one partition."""
        partition_no, start = next(iter(self._starts.items()))
        freed = 0

        def free(transaction: WriteTransaction) -> None:
            nonlocal freed
            freed = free_chunks(self._environment, transaction, partition_no, start)
            freed += free_aborted(self._environment, transaction, partition_no, start)
            if not freed:
                # Write an unchanged value: LMDB reuses freed pages from the second transaction after the one
                # that freed them, and on a full disk no other transaction may come.
                key = PARTITION_KEY.pack(partition_no)
                found = transaction.get(key, OFFSET.pack(start), db=self._environment.starts)
                transaction.put(key, found, db=self._environment.starts)

        self._environment.write(free, frees=True)
        if not freed:
            del self._starts[partition_no]
