"""Where the groups of kshim in front of an upstream are kept, and which kshim coordinates which of them.

A seam: the service of the upstream knows a `GroupShards`, and no more of how it keeps what it keeps.
"""

from __future__ import annotations

from typing import Protocol

from twisted.internet.defer import Deferred

from kshim.coordination.group_runtime import GroupRuntime
from kshim.storage.interfaces import Journal


class GroupShards(Protocol):
    """The shards of the group coordinator."""

    @property
    def partitions(self) -> int:
        """How many shards there are; fixed before `start`."""

    @property
    def journal(self) -> Journal:
        """What the runtime appends to, and loads from."""

    def prepare(self) -> Deferred[None]:
        """Find or make what is needed; errbacks StorageError. Called once, before all else."""

    def start(self, groups: GroupRuntime) -> Deferred[None]:
        """Begin to lead shards: `groups.load(shard, Leader(HERE, epoch))` for each that is won, and
        `groups.unload(shard, epoch)` for each that is lost. Fires once clients may come.
        """

    def stop(self) -> Deferred[None]:
        """Give up all shards: groups are stopped already. Fires when others may lead them."""
