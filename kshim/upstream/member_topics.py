"""Learns the topics that consumer groups need, and their configs, before the coordinator goes by them.

A topic that is not known looks to the coordinator like one that does not exist: members would lose its
partitions. So a request that names topics waits until kshim has asked the upstream for them, and a shard is
served once the topics of its groups are known.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from twisted.internet.defer import Deferred

from kshim.coordination.group_runtime import GroupRuntime
from kshim.coordination.groups.consumer.member import JOINS
from kshim.coordination.groups.wanted_topics import WantedByShard
from kshim.storage.clock import after
from kshim.upstream.confirming import FRESH_S, Confirming
from kshim.upstream.every_topic import EveryTopic
from kshim.upstream.group_configs import UpstreamGroupConfigs
from kshim.upstream.learning import AT_ONCE
from kshim.upstream.link import LinkError
from kshim.upstream.topics import ABSENT_S, Topics
from schemas.consumer_protocol import decode_subscription
from schemas.message import MalformedMessage
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest
from schemas.primitives import can_be_written

logger = logging.getLogger(__name__)

AGAIN_S = 0.5
"""The pause before the upstream is asked again that did not answer."""
MOST_LOOKS = 3
"""How often kshim asks for the topics of a shard if a broker seems to be behind."""


class MemberTopics:
    """Asks for topics on behalf of members."""

    def __init__(
        self,
        groups: GroupRuntime,
        topics: Topics,
        every: EveryTopic,
        confirming: Confirming,
        configs: UpstreamGroupConfigs,
    ) -> None:
        self._groups = groups
        self._wanted = groups.wanted_topics
        self._topics = topics
        self._every = every
        self._confirming = confirming
        self._configs = configs

    # ---- requests

    def of_heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> Deferred[None] | None:
        """Learn the topics that a heartbeat needs; None if all are known. Errbacks LinkError.

        The first member of the consumer protocol turns a classic group into a consumer group. What the
        group's members have must be known by then.
        """
        if not request.group_id or not can_be_written(request.group_id):
            return None  # it will be refused
        names = set(request.subscribed_topic_names or ()) | self._of_conversion(request)
        known = self._know(names)
        lacks_configs = request.member_epoch == JOINS and not self._configs.is_known(request.group_id)
        if known is None and not request.subscribed_topic_regex and not lacks_configs:
            return None
        return Deferred.fromCoroutine(self._learn_for(request, names, known, lacks_configs=lacks_configs))

    def _of_conversion(self, request: ConsumerGroupHeartbeatRequest) -> set[str]:
        return self._wanted.of_classic(request.group_id) if request.member_epoch == JOINS else set()

    async def _learn_for(
        self,
        request: ConsumerGroupHeartbeatRequest,
        names: set[str],
        known: Deferred[None] | None,
        *,
        lacks_configs: bool,
    ) -> None:
        if lacks_configs:
            await self._configs.learn([request.group_id])
        if request.subscribed_topic_regex:
            await self._every.know(FRESH_S)
        if known is not None:
            await known
        for _ in range(MOST_LOOKS):  # the classic group may have changed meanwhile
            more = self._of_conversion(request) - names
            names |= more
            if (known := self._know(more)) is not None:
                await known

    def of_join(self, request: JoinGroupRequest) -> Deferred[None] | None:
        """Learn the topics that a classic member of a consumer group names; None if all are known. Errbacks
        LinkError.
        """
        if not request.protocols or not self._wanted.is_consumer_group(request.group_id):
            return None
        try:
            subscription = decode_subscription(request.protocols[0].metadata)
        except MalformedMessage:
            return None
        owned = (each.topic for each in subscription.owned_partitions)
        return self._know({*subscription.topics, *owned})

    def _know(self, names: Collection[str]) -> Deferred[None] | None:
        if not names or self._confirming.is_known(names):
            return None
        return self._confirming.know(list(names))

    async def look(self) -> None:
        """Look at the topics that members subscribe to, because they may have changed. Raises LinkError."""
        await self._topics.look_at_wanted()
        if self._wanted.has_regexes():
            await self._every.look()

    # ---- shards

    def before_serving(self, shard: int) -> Deferred[None] | None:
        """Learn the topics of a shard's consumer groups; None if it has none. Fires when they are known."""
        wanted = self._wanted.by_shard(shard)
        if not wanted.group_ids:
            return None
        return Deferred.fromCoroutine(self._learn(wanted))

    async def _learn(self, wanted: WantedByShard) -> None:
        clock, looks = self._topics.clock, 0
        while True:
            try:
                await self._look(wanted, clock.seconds())
            except LinkError as error:
                logger.debug("the topics of groups cannot be asked for: %s", error)
                await after(clock, AGAIN_S)
                continue
            looks += 1
            if looks == MOST_LOOKS or not self._is_behind(wanted):
                return
            await after(clock, ABSENT_S)

    async def _look(self, wanted: WantedByShard, since_s: float) -> None:
        """Ask for topics that are not known, or were last asked for before `since_s`."""
        topics = self._topics
        await self._configs.learn([each for each in wanted.group_ids if not self._configs.is_known(each)])
        if wanted.has_regexes:
            await self._every.know(0)
        known = [name for name in wanted.names if topics.confirmed_s.get(name, since_s) < since_s]
        for first in range(0, len(known), AT_ONCE):
            await topics.ask_again(known[first : first + AT_ONCE])
        await topics.learn(topics.missing(wanted.names))
        await topics.learn(topics.missing(wanted.held))

    def _is_behind(self, wanted: WantedByShard) -> bool:
        """True if members have partitions of which the upstream's answer knows nothing. The topic may be
        deleted; or the broker that answered has just started.
        """
        by_id = self._topics.by_id
        return any(
            topic_id not in by_id or partition >= len(by_id[topic_id].partitions)
            for topic_id, partition in wanted.held.items()
        )
