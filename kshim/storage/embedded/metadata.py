"""The metadata map in LMDB. Reads return the committed state, without a cache."""

from collections.abc import Iterator, Mapping

from twisted.internet.defer import Deferred

from kshim.storage.embedded.environment import Environment
from kshim.storage.embedded.writer import Writer
from kshim.storage.embedded.writes import Put


class EmbeddedMetadata:
    """Implements `kshim.storage.interfaces.Metadata`."""

    def __init__(self, environment: Environment, writer: Writer) -> None:
        self._environment = environment
        self._writer = writer

    def get(self, key: bytes) -> bytes | None:
        with self._environment.read("meta") as transaction:
            value = transaction.get(key)
            return None if value is None else bytes(value)

    def items(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        found = []
        with self._environment.read("meta") as transaction:
            cursor = transaction.cursor()
            if cursor.set_range(prefix):
                for key, value in cursor.iternext():
                    if key[: len(prefix)] != prefix:
                        break
                    found.append((bytes(key), bytes(value)))
        return iter(found)

    def put(self, changes: Mapping[bytes, bytes | None]) -> Deferred[None]:
        put = Put(changes=dict(changes))
        self._writer.submit(put)
        return put.settled
