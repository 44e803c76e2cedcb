"""The durable store: one LMDB environment in the data directory.

The reactor thread assigns offsets and queues writes. One writer thread takes all queued writes, puts them
into one transaction, commits it, and reports that to the reactor thread. Consumers see only committed
records.
"""

from kshim.storage.embedded.store import EmbeddedStore

__all__ = ["EmbeddedStore"]
