"""Groups that are kept in memory: all of them here, for as long as the process lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, succeed

from kshim.coordination.group_runtime import GroupRuntime
from kshim.coordination.loading import Leader
from kshim.storage.journal import LogJournal
from kshim.storage.memory import MemoryStore
from kshim.upstream.interfaces import Addresses

PARTITIONS = 50


class MemoryShards:
    """Implements `GroupShards`."""

    def __init__(self, reactor: Any, ask: Callable[[Any], Deferred[Any]], node_id: int) -> None:
        self.partitions = PARTITIONS
        self.journal = LogJournal(MemoryStore().log, range(PARTITIONS))
        self._node_id = node_id

    def prepare(self) -> Deferred[None]:
        return succeed(None)

    def start(self, groups: GroupRuntime, addresses: Callable[[], Addresses]) -> Deferred[None]:
        for shard in range(PARTITIONS):
            groups.load(shard, Leader(self._node_id))
        return succeed(None)

    def leader(self, shard: int) -> Addresses | None:
        return None

    def may_answer(self, shard: int) -> bool:
        return True

    def stop(self) -> Deferred[None]:
        return succeed(None)
