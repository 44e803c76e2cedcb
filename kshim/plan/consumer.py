"""The model of a member of the consumer protocol (KIP-848): all goes through its heartbeats."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from kshim.coordination.groups.consumer.member import GOES_AWAY, JOINS, LEAVES
from kshim.coordination.groups.consumer.requests import MemberHeartbeat, Patience
from kshim.plan.broker import GROUP, TOPIC, TOPIC_ID
from kshim.plan.member import Process, World
from kshim.plan.setting import BrokerKind, ClientKind, Setting
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

VERSION: Final = 1
PATIENCE: Final = {ClientKind.JAVA: Patience.INTERVAL, ClientKind.LIBRDKAFKA: Patience.INTERVAL_BUT_FIRST}
"""How long each client waits for an answer; see `kshim.callers.patience`."""


class ConsumerMember(Process):
    """One process with one consumer of the consumer protocol. It has one heartbeat under way at a time."""

    def __init__(self, world: World, setting: Setting, name: str, instance_id: str | None) -> None:
        super().__init__(world, setting, name, instance_id)
        self._member_id = world.broker.new_id()
        self._epoch = JOINS
        self._interval_ms = setting.interval_ms
        self._says_owned = False
        """True if its next heartbeat says what it owns: it has taken what it was given, or given up the
        rest.
        """
        self._is_early = False
        """True if the next heartbeat follows as soon as this one is answered."""

    def begin(self) -> None:
        self._beat()

    def leave(self) -> None:
        """Say that it leaves; or, if it is static, that it goes away."""
        epoch = LEAVES if self.instance_id is None else GOES_AWAY
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self._member_id, member_epoch=epoch, instance_id=self.instance_id
        )
        self.say(VERSION, MemberHeartbeat(request))

    def _beat(self) -> None:
        if self._asked:
            self._is_early = True
            return
        self._is_early = False
        joins = self._epoch == JOINS
        says_owned, self._says_owned = self._says_owned or joins, False
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=self.instance_id if joins else None,
            rebalance_timeout_ms=self.setting.rebalance_ms if joins else -1,
            subscribed_topic_names=(TOPIC,) if joins else None,
            topic_partitions=_by_topic(self.owned) if says_owned else None,
        )
        waits = self.setting.broker is BrokerKind.KSHIM
        patience = PATIENCE[self.setting.client] if waits else Patience.NONE
        self.ask(VERSION, MemberHeartbeat(request, patience=patience), self._heard)
        self.call("heartbeat", self._interval_ms, self._beat)

    def _heard(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.error_code == ErrorCode.UNRELEASED_INSTANCE_ID:
            self.call("heartbeat", self._interval_ms, self._beat)
            return
        if answer.error_code != ErrorCode.NONE:
            self.lose(self.owned)
            self._epoch = JOINS
            self.stop("reconcile")
            self._beat()
            return
        if answer.heartbeat_interval_ms != self._interval_ms:
            self._interval_ms = answer.heartbeat_interval_ms
            self.call("heartbeat", self._interval_ms, self._beat)
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            has = frozenset(each for part in answer.assignment.topic_partitions for each in part.partitions)
            self.at_next_poll(partial(self._reconcile, has))
        elif self._is_early:
            self._beat()

    def _reconcile(self, has: frozenset[int]) -> None:
        """Give up what is not given any more, take the rest, and say so at once."""
        if has == self.owned:
            return
        self.lose(self.owned - has)
        self.gain(has - self.owned)
        self._says_owned = True
        self._beat()


def _by_topic(owned: Collection[int]) -> tuple[TopicPartitions, ...]:
    if not owned:
        return ()
    return (TopicPartitions(topic_id=TOPIC_ID, partitions=tuple(sorted(owned))),)
