"""Asks where the upstream's partitions begin and end, for people who look at lag.

The upstream is asked when somebody looks, at most every FRESH_S, and only for topics that groups use. An
offset that is not known (yet) is UNKNOWN.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from twisted.internet.defer import Deferred

from kshim.cluster import Topic
from kshim.configs.endpoint import Endpoint
from kshim.storage.clock import TimerClock
from kshim.storage.interfaces import Offsets
from kshim.upstream.interfaces import Upstream
from kshim.upstream.link import Link, LinkError
from schemas.error_code import ErrorCode
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

logger = logging.getLogger(__name__)

UNKNOWN = -1
FRESH_S = 2.0
AT_ONCE = 500
"""Limit of topics in one request."""
ANSWER_S = 5.0
EARLIEST, LATEST = -2, -1

Partitions = Mapping[str, Sequence[int]]
"""Partition indexes, by topic."""


class Ends:
    """Where the upstream's partitions begin and end. Implements `PartitionEnds`."""

    def __init__(
        self,
        reactor: TimerClock,
        upstream: Upstream,
        topics: Mapping[str, Topic],
        address: Callable[[int], Endpoint],
    ) -> None:
        """topics: the topics to look at, by name. address: returns a broker's address for its node id."""
        self._reactor = reactor
        self._upstream = upstream
        self._topics = topics
        self._address = address
        self._links: dict[int, Link] = {}
        self._known: dict[int, Offsets] = {}
        """Known offsets, by partition_no."""
        self._fresh_until_s = 0.0
        self._looking: list[Deferred[None]] | None = None

    def offsets(self, partition_no: int) -> Offsets:
        """Return the offsets as they were at the last look, and look again if that was too long ago."""
        if self._reactor.seconds() >= self._fresh_until_s:
            self.look()
        return self._known.get(partition_no, Offsets(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN))

    def look(self) -> Deferred[None]:
        """Ask the upstream, unless the last answer is fresh. Fires when that is over, even if it failed."""
        looked: Deferred[None] = Deferred()
        if self._looking is not None:
            self._looking.append(looked)
        elif self._reactor.seconds() < self._fresh_until_s:
            looked.callback(None)
        else:
            self._looking = [looked]
            Deferred.fromCoroutine(self._look())
        return looked

    def stop(self) -> None:
        """Close all links."""
        for link in self._links.values():
            link.close()

    async def _look(self) -> None:
        names = list(self._topics)
        for first in range(0, len(names), AT_ONCE):
            try:
                await self._look_at(names[first : first + AT_ONCE])
            except LinkError as error:
                logger.debug("the ends of partitions are not known: %s", error)
        self._fresh_until_s = self._reactor.seconds() + FRESH_S
        looking, self._looking = self._looking or [], None
        for each in looking:
            each.callback(None)

    async def at(self, names: Sequence[str], timestamp: int) -> dict[tuple[str, int], int]:
        """Return the partitions' offsets for a timestamp, EARLIEST or LATEST, by topic and index. Partitions
        whose offset is not known now are left out.
        """
        found: dict[tuple[str, int], int] = {}
        for first in range(0, len(names), AT_ONCE):
            try:
                led = await self._led(names[first : first + AT_ONCE])
            except LinkError as error:
                logger.debug("the offsets of partitions are not known: %s", error)
                continue
            for node_id, partitions in led.items():
                try:
                    found.update(await _listed(await self._link(node_id), partitions, timestamp))
                except LinkError as error:
                    logger.debug("the offsets of partitions are not known: %s", error)
        return found

    async def _look_at(self, names: Iterable[str]) -> None:
        for node_id, partitions in (await self._led(names)).items():
            try:
                link = await self._link(node_id)
                begin, end = (
                    await _listed(link, partitions, EARLIEST),
                    await _listed(link, partitions, LATEST),
                )
            except LinkError as error:
                logger.debug("the ends of partitions are not known: %s", error)
                begin = end = {}
            self._note(partitions, begin, end)

    async def _led(self, names: Iterable[str]) -> Mapping[int, Partitions]:
        """Return the partitions of the topics, by their leader's node id. Raises LinkError."""
        asked = tuple(MetadataRequestTopic(name=name) for name in names)
        response: MetadataResponse = await self._upstream.ask(
            MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        )
        led: defaultdict[int, dict[str, list[int]]] = defaultdict(dict)
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.leader_id >= 0 and topic.name:
                    led[partition.leader_id].setdefault(topic.name, []).append(partition.partition_index)
        return led

    def _note(
        self,
        partitions: Partitions,
        begin: Mapping[tuple[str, int], int],
        end: Mapping[tuple[str, int], int],
    ) -> None:
        for name, indexes in partitions.items():
            topic = self._topics.get(name)
            for index in indexes:
                found = None if topic is None else topic.partition(index)
                if found is not None:
                    first, last = begin.get((name, index), UNKNOWN), end.get((name, index), UNKNOWN)
                    self._known[found.partition_no] = Offsets(first, last, last, last)

    async def _link(self, node_id: int) -> Link:
        """Return an open link to a broker. Raises LinkError."""
        link = self._links.get(node_id)
        if link is None or not link.is_open:
            try:
                address = self._address(node_id)
            except KeyError:
                raise LinkError(f"broker {node_id} is not known") from None
            link = self._links[node_id] = await self._upstream.connect(address, ANSWER_S)
        return link


async def _listed(link: Link, partitions: Partitions, timestamp: int) -> dict[tuple[str, int], int]:
    """Ask a broker for the offsets of partitions; leave out those with an error. Raises LinkError."""
    topics = [
        ListOffsetsTopic(
            name=name,
            partitions=tuple(ListOffsetsPartition(partition_index=n, timestamp=timestamp) for n in indexes),
        )
        for name, indexes in partitions.items()
    ]
    request = ListOffsetsRequest(replica_id=-1, topics=tuple(topics), timeout_ms=int(ANSWER_S * 1000))
    response = await link.ask(request, timeout_s=ANSWER_S)
    return {
        (topic.name, partition.partition_index): partition.offset
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE
    }
