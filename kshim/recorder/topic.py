"""Writes each rebalance into the topic kshim.rebalances, so that any consumer, and Spark, can read it.

The key of a record is the group's id, its value the JSON of `shown`. The topic has one partition, so the
records are in the order in which the rebalances ended.
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
    from kshim.requests.aside import Aside
    from kshim.storage.clock import Clock
    from kshim.storage.interfaces import Log

TOPIC = "kshim.rebalances"
MOST_GROUPS = 10_000
"""For more the writer forgets who owned what; it knows again after the next rebalance."""
MOST_PARTITIONS = 200_000
"""Of all these groups together."""
MOST_WAITING = 1_000
MOST_WAITING_BYTES = 16 * 1024 * 1024
"""Rebalances that are not written yet; of more the latest are dropped, with a line in the log."""

logger = logging.getLogger(__name__)


class RebalanceTopic:
    """Takes what the server reports; one batch is written at a time, with all that has come meanwhile."""

    def __init__(self, cluster: Cluster, log: Log, aside: Aside, clock: Clock) -> None:
        self._cluster, self._log = cluster, log
        self._aside, self._clock = aside, clock
        self._ownership: dict[str, Ownership] = {}
        self._partitions = 0
        """How many `_ownership` knows."""
        self._waiting: list[Rebalance] = []
        self._waiting_bytes = 0
        self._is_writing = False

    def add(self, what: object) -> None:
        """Take what has just happened; all but rebalances is ignored."""
        if not isinstance(what, Rebalance):
            return
        size = what.size
        if len(self._waiting) >= MOST_WAITING or self._waiting_bytes + size > MOST_WAITING_BYTES:
            logger.warning("%s: dropped a rebalance of group %s: too many at once", TOPIC, what.group_id)
            return
        self._waiting.append(what)
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
                await self._log.append(partition_no, encode_entries(entries, now_ms), now_ms=now_ms)
            except StorageError as error:
                logger.error("%s: %d rebalance(s) are not written: %s", TOPIC, len(entries), error)
        self._is_writing = False

    async def _partition_no(self) -> int:
        """The number of the topic's partition; the topic is created if it is not there."""
        topic = self._cluster.topics.get(TOPIC)
        if topic is None:
            made = await self._cluster.create_topics([NewTopic(TOPIC, num_partitions=1)])
            topic = self._cluster.topics.get(TOPIC)
            if topic is None:
                raise StorageError(f"the topic cannot be created: {made[TOPIC]}")
        return topic.partitions[0].partition_no

    def _encode(self, rebalances: list[Rebalance]) -> list[tuple[bytes, bytes | None]]:
        """Done aside: nothing else uses `_ownership`."""
        entries: list[tuple[bytes, bytes | None]] = []
        for rebalance in rebalances:
            value = json.dumps(shown(rebalance, self._effect(rebalance)))
            entries.append((rebalance.group_id.encode(), value.encode()))
        return entries

    def _effect(self, rebalance: Rebalance) -> Effect:
        """The effect of the next rebalance of a group; groups whose last one is long ago may be forgotten."""
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
