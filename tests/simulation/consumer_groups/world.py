"""The world of one history: a broker that may crash, its journal, its topics, and the network in between.

A decision's replies leave when its records are durable. A crash loses the last records that are not, and the
replies that wait for them; the groups are then loaded from the journal.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

from kshim.coordination.decision import Caller, Decision
from kshim.coordination.groups.consumer.environment import Environment
from kshim.coordination.groups.consumer.topics import Topic
from kshim.coordination.groups.coordinator import Coordinator
from kshim.coordination.groups.hard_state import HardState
from kshim.coordination.groups.records import encode_record
from kshim.coordination.groups.settings import MigrationPolicy, Settings
from kshim.coordination.groups.stored_records import StoredRecords
from tests.coordination.groups.consumer.world import FakeConfigs, FakeTopics
from tests.simulation.consumer_groups.checks import Checks
from tests.simulation.groups.clock import START_MS, SimulatedClock
from tests.simulation.groups.history import Happened

GROUP = "group"
TOPICS = ("foo", "bar", "zar")
SESSION_MS = 10_000
POLICIES = (*[MigrationPolicy.BIDIRECTIONAL] * 5, *MigrationPolicy)


class SimulatedTopics(FakeTopics):
    """Topics that get another id whenever they are created."""

    def __init__(self) -> None:
        super().__init__()
        self._ids = 0

    def create(self, name: str, partitions: int) -> None:
        self._ids += 1
        self.created += 1
        self.by_name[name] = Topic(name, UUID(int=self._ids), partitions)


class World:
    """The world of one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = Random(seed)
        self.clock = SimulatedClock()
        self.happened: list[Happened] = []
        self.counts: Counter[str] = Counter()
        self.slowest_ms = chance.choice((0, 10, 200))
        self.topics = SimulatedTopics()
        for name in TOPICS[: chance.randint(1, 3)]:
            self.topics.create(name, chance.randint(1, 4))
        self._settings = Settings(
            group_initial_rebalance_delay_ms=0,
            group_consumer_max_size=chance.choice((3, 1_000, 1_000)),
            group_consumer_migration_policy=chance.choice(POLICIES),
            group_consumer_assignment_interval_ms=0,
        )
        self._configs = FakeConfigs(SESSION_MS, 2_000, chance.choice((0, 0, 0, 1_000)))
        self._ids = self._tokens = 0
        self._waiting: dict[int, Callable[[Any], object]] = {}
        self._unsettled: deque[Decision] = deque()
        self.journal: list[tuple[bytes, bytes | None]] = []
        self._life = 0
        self._alarm_ms: int | None = None
        self.checks = Checks()
        self._load()

    # ---- the broker

    @property
    def shard(self) -> Any:
        return self.coordinator._shards[0]

    def ask(self, version: int, client_id: str, request: Any, hear: Callable[[Any], object]) -> int:
        """Give the broker a request; return its token. `hear` gets the answer, unless the broker crashes."""
        self._tokens += 1
        token = self._tokens
        self.counts["requests"] += 1
        self.note(client_id, "asks", getattr(request, "request", request))
        self._waiting[token] = hear
        self._carry_out(
            self.coordinator.handle(Caller(token, version, client_id, "/host"), request, self.clock.now_ms)
        )
        return token

    def release(self, token: int) -> None:
        """Another request follows on the connection, or it is lost."""
        if token in self._waiting:
            self._carry_out(self.coordinator.release_member_heartbeat(0, GROUP, token, self.clock.now_ms))

    def forget(self, token: int) -> None:
        """Nobody hears this answer."""
        if token in self._waiting:
            self._waiting[token] = lambda answer: None

    def crash(self) -> None:
        """The last records are lost, and all answers that wait."""
        self.counts["crashes"] += 1
        self.note("broker", "crashes")
        for _ in range(self.chance.randint(0, len(self._unsettled))):
            self._keep(self._unsettled.popleft())
        self._unsettled.clear()
        self._waiting.clear()
        self._load()

    def topic_changed(self, name: str) -> None:
        self.coordinator.topic_changed(name, "has changed", self.clock.now_ms)
        self._set_alarm()

    def _new_id(self, prefix: str = "") -> str:
        self._ids += 1
        return f"{prefix}id-{self._ids}"

    def _load(self) -> None:
        self._life += 1
        environment = Environment(
            self._configs, self._new_id, self.topics, self._settings.group_consumer_assignors
        )
        self.coordinator = Coordinator(self._settings, self._new_id, 1, environment=environment)
        self.coordinator.begin_load(0)
        self.coordinator.load(0, self.journal, None)
        self._mirror = HardState()
        self._stored = StoredRecords(self._mirror)
        self._stored.replay(self.journal, None)
        decision = self.coordinator.finish_load(0, self.clock.now_ms)
        self.checks.loaded(self.shard.hard_state, self._mirror)
        self._carry_out(decision)

    def _carry_out(self, decision: Decision) -> None:
        self.coordinator.replay(0, decision.records)
        self._stored.replay(map(encode_record, decision.records), None)
        self.checks.decided(self.shard, decision, self._mirror)
        self._unsettled.append(decision)
        self.clock.after(self.chance.randint(0, self.slowest_ms), self._settle, self._life, decision)
        self._set_alarm()

    def _settle(self, life: int, decision: Decision) -> None:
        """This decision and all before it are durable."""
        if life != self._life or not any(each is decision for each in self._unsettled):
            return
        while True:
            first = self._unsettled.popleft()
            self._keep(first)
            for token, answer in first.replies:
                hear = self._waiting.pop(token, None)
                if hear is not None:
                    self.note("broker", "answers", answer)
                    hear(answer)
            if first is decision:
                return

    def _keep(self, decision: Decision) -> None:
        self.journal += map(encode_record, decision.records)
        self.counts["records"] += len(decision.records)

    def _set_alarm(self) -> None:
        due_ms = self.coordinator.next_deadline_ms()
        if due_ms is not None and (self._alarm_ms is None or due_ms < self._alarm_ms):
            self._alarm_ms = due_ms
            self.clock.after(max(due_ms - self.clock.now_ms, 0), self._ring, due_ms)

    def _ring(self, due_ms: int) -> None:
        if due_ms != self._alarm_ms:
            return
        self._alarm_ms = None
        for decision in self.coordinator.advance(self.clock.now_ms):
            self._carry_out(decision)
        self._set_alarm()

    # ---- the network

    def delay_ms(self) -> int:
        return self.chance.randint(0, self.slowest_ms)

    def note(self, who: str, what: str, detail: Any = None) -> None:
        self.happened.append((self.clock.now_ms - START_MS, who, what, detail))
