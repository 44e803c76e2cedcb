"""kshim's coordinator of groups on the virtual clock, with one topic and one group.

Its records are durable at once; requests and answers take the network's time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

from kshim.coordination.decision import Caller, Decision
from kshim.coordination.groups.consumer.environment import Environment, SameConfigs
from kshim.coordination.groups.consumer.requests import MemberHeartbeat
from kshim.coordination.groups.consumer.topics import Topic
from kshim.coordination.groups.coordinator import Coordinator
from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.coordination.groups.refusals import WaitingHeartbeat
from kshim.coordination.groups.settings import Settings
from kshim.plan.clock import VirtualClock
from kshim.plan.setting import ASSIGNMENT_INTERVAL_MS, Protocol, Setting
from schemas.internal_topics.group_metadata_log import TopicId

GROUP, TOPIC = "planned", "topic"
TOPIC_ID = UUID(int=1)
ID_BITS = 64

Hear = Callable[[Any], object]


class _OneTopic:
    """Implements `Topics`."""

    def __init__(self, partitions: int) -> None:
        self._topic = Topic(TOPIC, TOPIC_ID, partitions)

    def named(self, name: str) -> Topic | None:
        return self._topic if name == TOPIC else None

    def with_id(self, topic_id: TopicId) -> Topic | None:
        return self._topic if topic_id == TOPIC_ID else None

    def names(self) -> Collection[str]:
        return (TOPIC,)

    def version(self) -> int:
        return 1


class Broker:
    """Answers requests, and reports rebalances to `on_rebalance`."""

    def __init__(
        self,
        setting: Setting,
        clock: VirtualClock,
        partitions: int,
        chance: Random,
        on_rebalance: Callable[[Rebalance], object],
    ) -> None:
        self._clock, self._chance, self._on_rebalance = clock, chance, on_rebalance
        self._latency_ms = setting.latency_ms
        settings = coordinator_settings(setting)
        environment = Environment(
            SameConfigs(settings), self.new_id, _OneTopic(partitions), (setting.chosen_assignor,)
        )
        self._coordinator = Coordinator(settings, self._new_member_id, 1, environment=environment)
        self._waiting: dict[int, Hear] = {}
        self._tokens = 0
        self._alarm_ms: int | None = None
        self._coordinator.begin_load(0)
        self._carry_out(self._coordinator.finish_load(0, clock.now_ms))

    def new_id(self) -> str:
        """An id like a random UUID, but of the seed."""
        return f"{self._chance.getrandbits(ID_BITS):016x}"

    def ask(self, client_id: str, version: int, request: Any, hear: Hear) -> int:
        """Send a request; `hear` gets the answer. Return a number to release the answer with."""
        self._tokens += 1
        token = self._tokens
        self._waiting[token] = hear
        caller = Caller(token, version, client_id, "/host")
        self._clock.after(self._latency_ms, partial(self._arrive, caller, request))
        return token

    def release(self, token: int, request: Any) -> None:
        """The connection of a request breaks: nobody waits for its answer."""
        if self._waiting.pop(token, None) is None:
            return
        now_ms = self._clock.now_ms
        if isinstance(request, WaitingHeartbeat):
            member_id = request.request.member_id
            self._carry_out(self._coordinator.release_heartbeat(0, GROUP, member_id, token, now_ms))
        elif isinstance(request, MemberHeartbeat):
            self._carry_out(self._coordinator.release_member_heartbeat(0, GROUP, token, now_ms))

    def _arrive(self, caller: Caller, request: Any) -> None:
        self._carry_out(self._coordinator.handle(caller, request, self._clock.now_ms))

    def _carry_out(self, decision: Decision) -> None:
        if decision.records:
            self._coordinator.replay(0, decision.records)
        for token, answer in decision.replies:
            hear = self._waiting.pop(token, None)
            if hear is not None:
                self._clock.after(self._latency_ms, partial(hear, answer))
        for report in decision.reports:
            if isinstance(report, Rebalance):
                self._on_rebalance(report)
        self._set_alarm()

    def _set_alarm(self) -> None:
        due_ms = self._coordinator.next_deadline_ms()
        if due_ms is not None and (self._alarm_ms is None or due_ms < self._alarm_ms):
            self._alarm_ms = due_ms
            self._clock.after(due_ms - self._clock.now_ms, partial(self._ring, due_ms))

    def _ring(self, due_ms: int) -> None:
        if due_ms != self._alarm_ms:
            return
        self._alarm_ms = None
        for decision in self._coordinator.advance(self._clock.now_ms):
            self._carry_out(decision)
        self._set_alarm()

    def _new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{self.new_id()}"


def coordinator_settings(setting: Setting) -> Settings:
    """The settings of the coordinator. Sessions may be shorter than Kafka's default bounds allow."""
    settings = Settings(
        group_min_session_timeout_ms=1,
        group_initial_rebalance_delay_ms=setting.delay_ms,
        group_consumer_session_timeout_ms=setting.session_ms,
        is_consumer_interval_set=setting.heartbeat_ms is not None,
    )
    if setting.protocol is not Protocol.CONSUMER:
        return settings
    return settings._replace(
        group_consumer_heartbeat_interval_ms=setting.interval_ms,
        group_consumer_assignors=(setting.chosen_assignor,),
        group_consumer_assignment_interval_ms=ASSIGNMENT_INTERVAL_MS[setting.broker],
    )
