"""The chores that the writer thread does when nothing is queued. Those that free space come first."""

from __future__ import annotations

from typing import NamedTuple

from kshim.storage.embedded.compaction import Compactor
from kshim.storage.embedded.deletion import Deletion
from kshim.storage.embedded.environment import Environment
from kshim.storage.embedded.expiry import Expiry
from kshim.storage.embedded.trimming import Trimming


class Chores(NamedTuple):
    deletion: Deletion
    trimming: Trimming
    expiry: Expiry
    compactor: Compactor

    def delete(self, partition_no: int) -> None:
        """Drop all other work for a partition, and begin to free its space."""
        self.trimming.forget(partition_no)
        self.compactor.forget(partition_no)
        self.deletion.add(partition_no)


def new_chores(environment: Environment) -> Chores:
    """The chores, with the work that was unfinished when the store was closed."""
    return Chores(Deletion(environment), Trimming(environment), Expiry(environment), Compactor(environment))
