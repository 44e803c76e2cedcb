"""Deleting partitions: a bounded number of chunks in one transaction, until none is left.

That a partition is being deleted is noted in the next transaction, whatever is written in it, or when the
store is closed before that. So a restart goes on with it, and of a deletion and a write behind it both are
there or none.
"""

from kshim.storage.embedded.environment import DELETION_BYTES, Environment, WriteTransaction
from kshim.storage.embedded.freeing import free_chunks
from kshim.storage.embedded.producers import free_producers
from kshim.storage.embedded.writes import PARTITION_KEY


class Deletion:
    """The partitions that are still to be freed. Used by the writer thread once it runs."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        with environment.read(environment.deleted) as transaction:
            keys = [bytes(key) for key in transaction.cursor().iternext(keys=True, values=False)]
        self.pending = [PARTITION_KEY.unpack(key)[0] for key in keys]
        self._noted = len(self.pending)

    @property
    def due(self) -> bool:
        return bool(self.pending)

    def add(self, partition_no: int) -> None:
        self.pending.append(partition_no)

    def close(self) -> None:
        """Note which partitions are to be freed. Raises StorageError."""
        if self._noted < len(self.pending):
            self._environment.write(self.note, beyond_bytes=DELETION_BYTES)

    def note(self, transaction: WriteTransaction) -> None:
        """Write down which partitions are to be freed, in a transaction that does something else, too."""
        for partition_no in self.pending[self._noted :]:
            transaction.put(PARTITION_KEY.pack(partition_no), b"", db=self._environment.deleted)

    def step(self) -> None:
        """Note which partitions are to be freed, and free some chunks of the first."""
        self._environment.write(self._erase, beyond_bytes=DELETION_BYTES)
        if self._erased:
            self.pending.pop(0)
        self._noted = len(self.pending)

    def _erase(self, transaction: WriteTransaction) -> None:
        environment = self._environment
        self.note(transaction)
        # The last step only notes the end, and so is a transaction of its own: LMDB uses freed pages again
        # from the second transaction after the one that freed them.
        first = self.pending[0]
        freed = free_chunks(environment, transaction, first, None)
        self._erased = not (freed or free_producers(environment, transaction, first))
        if self._erased:
            for database in (environment.deleted, environment.compacted, environment.starts):
                transaction.delete(PARTITION_KEY.pack(first), db=database)
