"""Groups that are kept in memory: all of them here, for as long as the process lives."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed

from kshim.configs.config import Config
from kshim.coordination.group_runtime import GroupRuntime
from kshim.coordination.loading import Leader
from kshim.storage.journal import LogJournal
from kshim.storage.memory import MemoryStore
from kshim.upstream.contact import Contact
from kshim.upstream.front import HERE


class MemoryShards:
    """Implements `GroupShards`."""

    def __init__(self, contact: Contact, config: Config, reactor: Any) -> None:
        self.partitions = config.offsets_topic_num_partitions
        self.journal = LogJournal(MemoryStore().log, range(self.partitions))

    def prepare(self) -> Deferred[None]:
        return succeed(None)

    def start(self, groups: GroupRuntime) -> Deferred[None]:
        for shard in range(self.partitions):
            groups.load(shard, Leader(HERE))
        return succeed(None)

    def stop(self) -> Deferred[None]:
        return succeed(None)
