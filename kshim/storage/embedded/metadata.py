"""The metadata map: rows of LMDB, and durable changes that are not in LMDB yet."""

from collections.abc import Iterator, Mapping, Sequence

from twisted.internet.defer import Deferred, fail

from kshim.storage.embedded.environment import Environment
from kshim.storage.embedded.writer import Writer
from kshim.storage.embedded.writes import Put, Write
from kshim.storage.interfaces import StorageError

MAX_KEY_BYTES = 511
"""LMDB's limit."""


class EmbeddedMetadata:
    """Implements `kshim.storage.interfaces.Metadata`, and is one of the writer's ledgers."""

    def __init__(self, environment: Environment, writer: Writer) -> None:
        self._environment = environment
        self._writer = writer
        self._recent: dict[bytes, tuple[int, bytes | None]] = {}
        """The changes that LMDB may lack: the number of the write, and the value."""

    def get(self, key: bytes) -> bytes | None:
        if (recent := self._recent.get(key)) is not None:
            return recent[1]
        with self._environment.read("meta") as transaction:
            value = transaction.get(key)
            return None if value is None else bytes(value)

    def items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        found: dict[bytes, bytes | None] = {}
        with self._environment.read("meta") as transaction:
            cursor = transaction.cursor()
            if cursor.set_range(prefix):
                for key, value in cursor.iternext():
                    if key[: len(prefix)] != prefix:
                        break
                    found[bytes(key)] = bytes(value)
        found.update((key, value) for key, (_, value) in self._recent.items() if key.startswith(prefix))
        return iter(sorted((key, value) for key, value in found.items() if value is not None))

    def put(self, changes: Mapping[bytes, bytes | None]) -> Deferred[None]:
        if any(not 0 < len(key) <= MAX_KEY_BYTES for key in changes):
            return fail(StorageError(f"a key of metadata has from 1 to {MAX_KEY_BYTES} bytes"))
        put = Put(changes=dict(changes))
        self._writer.submit(put)
        return put.settled

    # ---- the writer's ledger

    def committed(self, writes: Sequence[Write]) -> None:
        for write in writes:
            if isinstance(write, Put):
                for key, value in write.changes.items():
                    self._recent[key] = write.seq, value

    def applied(self, seq: int, partition_nos: Sequence[int]) -> None:
        if self._recent:
            self._recent = {key: known for key, known in self._recent.items() if known[0] > seq}

    def notify(self, writes: Sequence[Write]) -> None:
        pass

    def failed(self) -> None:
        pass

    def take(self, news: object) -> None:
        pass
