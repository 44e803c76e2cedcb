"""Writes each rebalance into the topic kshim.rebalances, so that any consumer, and Spark, can read it.

A record's key is the group id, its value the JSON of `shown`. The topic has one partition, so the records are
in the order in which the rebalances ended.
"""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.cluster import Cluster, NewTopic
from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.recorder.ownership import Effect, Ownership
from kshim.recorder.shown import shown
from kshim.storage.interfaces import StorageError
from schemas.records.batch import encode_entries

if TYPE_CHECKING:
    from kshim.storage.clock import Clock
    from kshim.storage.interfaces import Log
    from kshim.turns.aside import Aside

TOPIC = "kshim.rebalances"
MOST_GROUPS = 10_000
"""Most groups whose owners of partitions are remembered. A forgotten group's owners are known again after its
next rebalance.
"""
MOST_PARTITIONS = 200_000
"""Most partitions whose owners are remembered, for all groups together."""
MOST_WAITING = 1_000
MOST_WAITING_BYTES = 16 * 1024 * 1024
"""Most bytes of rebalances that wait to be written. Beyond it new ones are dropped, with a line in the log.
"""

logger = logging.getLogger(__name__)


class RebalanceTopic:
    """Writes rebalances.

    One batch is written at a time; the next has all rebalances that have come meanwhile.
    """

    def __init__(self, cluster: Cluster, log: Log, aside: Aside, clock: Clock) -> None:
        self._cluster, self._log = cluster, log
        self._aside, self._clock = aside, clock
        self._ownership: dict[str, Ownership] = {}
        self._partitions = 0
        """How many partitions `_ownership` knows."""
        self._waiting: list[Rebalance] = []
        self._waiting_bytes = 0
        self._is_writing = False

    def add(self, report: object) -> None:
        """Write a rebalance; ignore anything else that the server reports."""
        if not isinstance(report, Rebalance):
            return
        size = report.size
        if len(self._waiting) >= MOST_WAITING or self._waiting_bytes + size > MOST_WAITING_BYTES:
            logger.warning("%s: dropped a rebalance of group %s: too many at once", TOPIC, report.group_id)
            return
        self._waiting.append(report)
        self._waiting_bytes += size
        if not self._is_writing:
            self._is_writing = True
            Deferred.fromCoroutine(self._write()).addErrback(self._failed)

    async def _write(self) -> None:
        while self._waiting:
            some, self._waiting, self._waiting_bytes = self._waiting, [], 0
            entries = await self._aside.run(partial(self._encode, some))
            partition_no = await self._partition_no()
            now_ms = int(self._clock.seconds() * 1000)
            try:
                batch = encode_entries(entries, now_ms)
                await self._log.append(partition_no, batch.data, now_ms=now_ms, header=batch.header)
            except StorageError as error:
                logger.error("%s: %d rebalance(s) are not written: %s", TOPIC, len(entries), error)
        self._is_writing = False

    async def _partition_no(self) -> int:
        """Return the topic's partition. Creates the topic if it is missing. Raises StorageError."""
        topic = self._cluster.topics.get(TOPIC)
        if topic is None:
            made = await self._cluster.create_topics([NewTopic(TOPIC, num_partitions=1)])
            topic = self._cluster.topics.get(TOPIC)
            if topic is None:
                raise StorageError(f"the topic cannot be created: {made[TOPIC]}")
        return topic.partitions[0].partition_no

    def _encode(self, rebalances: list[Rebalance]) -> list[tuple[bytes, bytes | None]]:
        """Encode rebalances as keys and values. It runs aside, so nothing else may use `_ownership`."""
        entries: list[tuple[bytes, bytes | None]] = []
        for rebalance in rebalances:
            value = json.dumps(shown(rebalance, self._effect(rebalance)))
            entries.append((rebalance.group_id.encode(), value.encode()))
        return entries

    def _effect(self, rebalance: Rebalance) -> Effect:
        """Return the effect of a group's next rebalance. Forget the groups whose last rebalance is longest
        ago, if too many are known.
        """
        known = self._ownership
        ownership = known.pop(rebalance.group_id, None) or Ownership()
        self._partitions -= ownership.partitions
        effect = ownership.take(rebalance)
        self._partitions += ownership.partitions
        known[rebalance.group_id] = ownership
        while known and (len(known) > MOST_GROUPS or self._partitions > MOST_PARTITIONS):
            self._partitions -= known.pop(next(iter(known))).partitions
        return effect

    def _failed(self, failure: Failure) -> None:
        self._is_writing = False
        logger.error("%s: rebalances are not written: %s", TOPIC, failure.value)
