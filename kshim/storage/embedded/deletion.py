"""Deleting partitions: a bounded number of chunks in one transaction, until none is left.

That a partition is being deleted is written with the first step, so that a restart goes on with it.
"""

from kshim.storage.embedded.environment import DELETION_BYTES, Environment, WriteTransaction
from kshim.storage.embedded.writes import CHUNK_KEY, PARTITION_KEY
from kshim.storage.interfaces import StorageError

STEP_CHUNKS = 256


class Deletion:
    """The partitions that are still to be freed. Used by the writer thread once it runs."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        with environment.read(environment.deleted) as transaction:
            keys = [bytes(key) for key in transaction.cursor().iternext(keys=True, values=False)]
        self.pending = [PARTITION_KEY.unpack(key)[0] for key in keys]
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
        """Free some chunks of one partition."""
        try:
            self._environment.write(self._erase, beyond_bytes=DELETION_BYTES)
        except StorageError:
            self._failed = True
            return
        if self._erased:
            self.pending.pop(0)

    def _erase(self, transaction: WriteTransaction) -> None:
        partition_no = self.pending[0]
        name = PARTITION_KEY.pack(partition_no)
        transaction.put(name, b"", db=self._environment.deleted)
        cursor = transaction.cursor(self._environment.log)
        found = cursor.set_range(CHUNK_KEY.pack(partition_no, 0))
        for _ in range(STEP_CHUNKS):
            if not found or not cursor.key().startswith(name):
                transaction.delete(name, db=self._environment.deleted)
                self._erased = True
                return
            cursor.delete()
            found = bool(cursor.key())
        self._erased = False
