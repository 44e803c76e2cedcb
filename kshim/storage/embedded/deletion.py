"""Deletes partitions: a bounded number of chunks in one transaction, until none is left.

LMDB has a row for each partition that is being deleted, from the transaction of the deletion on. So a restart
goes on with it.
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

    @property
    def due(self) -> bool:
        return bool(self.pending)

    def add(self, partition_no: int) -> None:
        if partition_no not in self.pending:
            self.pending.append(partition_no)

    def step(self) -> None:
        """Free some chunks of the first partition."""
        self._environment.write(self._erase, frees=True)
        if self._erased:
            self.pending.pop(0)

    def _erase(self, transaction: WriteTransaction) -> None:
        environment = self._environment
        # The last step only stores the end, in a separate transaction: LMDB reuses freed pages from the
        # second transaction after the one that freed them.
        first = self.pending[0]
        freed = free_chunks(environment, transaction, first, None)
        self._erased = not (freed or free_producers(environment, transaction, first))
        if self._erased:
            for database in (environment.deleted, environment.compacted, environment.starts):
                transaction.delete(PARTITION_KEY.pack(first), db=database)
