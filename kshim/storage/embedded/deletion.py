"""Deleting partitions: a bounded number of chunks in one transaction, until none is left.

That a partition is being deleted is written with the first step, so that a restart goes on with it.
"""

from kshim.storage.embedded.environment import DELETION_BYTES, Environment, WriteTransaction
from kshim.storage.embedded.writes import PARTITION_KEY
from kshim.storage.interfaces import StorageError

STEP_CHUNKS = 256


class Deletion:
    """The partitions that are still to be freed. Used by the writer thread once it runs."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        with environment.read(environment.deleted) as transaction:
            keys = [bytes(key) for key in transaction.cursor().iternext(keys=True, values=False)]
        self.pending = [PARTITION_KEY.unpack(key)[0] for key in keys]
        self._noted = len(self.pending)
        self._failed = False

    @property
    def due(self) -> bool:
        """Whether step() has something to do. After a failure it waits for retry()."""
        return bool(self.pending) and not self._failed

    def add(self, partition_no: int) -> None:
        self.pending.append(partition_no)

    def retry(self) -> None:
        self._failed = False

    def step(self) -> None:
        """Note which partitions are to be freed, and free some chunks of the first."""
        try:
            self._environment.write(self._erase, beyond_bytes=DELETION_BYTES)
        except StorageError:
            self._failed = True
            return
        if self._erased:
            self.pending.pop(0)
        self._noted = len(self.pending)

    def _erase(self, transaction: WriteTransaction) -> None:
        for partition_no in self.pending[self._noted :]:
            transaction.put(PARTITION_KEY.pack(partition_no), b"", db=self._environment.deleted)
        # The last step only notes the end, and so is a transaction of its own: LMDB uses freed pages again
        # from the second transaction after the one that freed them.
        name = PARTITION_KEY.pack(self.pending[0])
        cursor = transaction.cursor(self._environment.log)
        cursor.set_range(name)
        self._erased = not cursor.key().startswith(name)
        if self._erased:
            transaction.delete(name, db=self._environment.deleted)
            transaction.delete(name, db=self._environment.compacted)
            return
        for _ in range(STEP_CHUNKS):
            if not cursor.key().startswith(name):
                return
            cursor.delete()
