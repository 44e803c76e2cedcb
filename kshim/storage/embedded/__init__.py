"""The durable store: a log of all writes, and one LMDB environment behind it, in the data directory.

The reactor thread assigns offsets. A write is answered once it is in the log; one append and one sync may
cover many. Then consumers see it, from memory. One thread puts logged writes into LMDB, many in one
transaction. Nothing acknowledged waits for LMDB, and after a crash the log has what LMDB lacks.
"""

from kshim.storage.embedded.store import EmbeddedStore

__all__ = ["EmbeddedStore"]
