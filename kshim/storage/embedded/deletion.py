"""Deletes partitions: a bounded number of chunks in one transaction, until none is left.

The next transaction, whatever it writes, also stores which partitions are being deleted; so does closing the
store. So a restart goes on with a deletion, and no write that was queued after it becomes durable before it.
"""

from kshim.storage.embedded.environment import Environment, WriteTransaction
from kshim.storage.embedded.freeing import free_chunks
from kshim.storage.embedded.producers import free_producers
from kshim.storage.embedded.rows import PARTITION_KEY


class Deletion:
    """The partitions that are still to be freed. Only the writer thread uses it, once that runs."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        with environment.read("deleted") as transaction:
            keys = [bytes(key) for key in transaction.cursor().iternext(keys=True, values=False)]
        self.pending = [PARTITION_KEY.unpack(key)[0] for key in keys]
        self._noted = len(self.pending)

    @property
    def due(self) -> bool:
        return bool(self.pending)

    def add(self, partition_no: int) -> None:
        self.pending.append(partition_no)

    def close(self) -> None:
        """Store which partitions are to be freed, unless that is done already. Raises StorageError."""
        if self._noted < len(self.pending):
            self._environment.write(self.note, frees=True)

    def note(self, transaction: WriteTransaction) -> None:
        """Store which partitions are to be freed, as part of any transaction."""
        for partition_no in self.pending[self._noted :]:
            transaction.put(PARTITION_KEY.pack(partition_no), b"", db=self._environment.deleted)

    def step(self) -> None:
        """Store which partitions are to be freed, and free some chunks of the first one."""
        self._environment.write(self._erase, frees=True)
        if self._erased:
            self.pending.pop(0)
        self._noted = len(self.pending)

    def _erase(self, transaction: WriteTransaction) -> None:
        environment = self._environment
        self.note(transaction)
        # The last step only stores the end, in a separate transaction: LMDB reuses freed pages from the
        # second transaction after the one that freed them.
        first = self.pending[0]
        freed = free_chunks(environment, transaction, first, None)
        self._erased = not (freed or free_producers(environment, transaction, first))
        if self._erased:
            for database in (environment.deleted, environment.compacted, environment.starts):
                transaction.delete(PARTITION_KEY.pack(first), db=database)
