"""Deleting partitions: a bounded number of chunks in one transaction, until none is left.

That a partition is being deleted is written with the first step, or when the store is closed before that, so
that a restart goes on with it.
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
            self._environment.write(self._note, beyond_bytes=DELETION_BYTES)

    def step(self) -> None:
        """Note which partitions are to be freed, and free some chunks of the first."""
        self._environment.write(self._erase, beyond_bytes=DELETION_BYTES)
        if self._erased:
            self.pending.pop(0)
        self._noted = len(self.pending)

    def _erase(self, transaction: WriteTransaction) -> None:
        environment = self._environment
        self._note(transaction)
        # The last step only notes the end, and so is a transaction of its own: LMDB uses freed pages again
        # from the second transaction after the one that freed them.
        first = self.pending[0]
        freed = free_chunks(environment, transaction, first, None)
        self._erased = not (freed or free_producers(environment, transaction, first))
        if self._erased:
            for database in (environment.deleted, environment.compacted, environment.starts):
                transaction.delete(PARTITION_KEY.pack(first), db=database)

    def _note(self, transaction: WriteTransaction) -> None:
        for partition_no in self.pending[self._noted :]:
            transaction.put(PARTITION_KEY.pack(partition_no), b"", db=self._environment.deleted)
