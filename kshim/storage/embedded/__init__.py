"""The durable store: one LMDB environment in the data directory.

The reactor thread assigns offsets and queues; one writer thread takes all that is queued, makes it one
transaction, commits, and tells the reactor. Consumers see what is committed.
"""

from kshim.storage.embedded.store import EmbeddedStore

__all__ = ["EmbeddedStore"]
