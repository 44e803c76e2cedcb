"""One broker: a real `Runtime` over a real `Coordinator`, whose every decision is shown to the checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from kshim.callers import RequestContext
from kshim.configs.endpoint import Endpoint
from kshim.coordination.decision import Caller, Decision
from kshim.coordination.group_runtime import GroupRuntime
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.coordinator import Coordinator
from kshim.coordination.groups.refusals import WaitingHeartbeat
from kshim.coordination.groups.shard_offsets import OffsetsOfGroup
from kshim.coordination.groups.timers import TimerKey
from kshim.coordination.loading import Leader
from kshim.turns import Turn
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import TopicId
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.records.end_txn_marker import EndTxnMarker
from tests.api.harness import later
from tests.simulation.groups.clock import SimulatedClock
from tests.simulation.groups.journal import SimulatedJournal

ADVERTISED = Endpoint("simulation", 9092)


class Watcher(Protocol):
    def decided(self, node: Node, shard: int, decision: Decision, *, is_due: bool) -> None: ...
    def began_to_lead(self, node: Node, shard: int) -> None: ...


class WatchedCoordinator(Coordinator):
    """A coordinator that shows each decision before it is carried out."""

    node: Node

    def handle(self, caller: Caller, request: Any, now_ms: int) -> Decision:
        node = self.node
        node.requests[caller.token] = request.request if type(request) is WaitingHeartbeat else request
        return node.shown(super().handle(caller, request, now_ms))

    def release_heartbeat(
        self, shard: int, group_id: str, member_id: str, token: int, now_ms: int
    ) -> Decision:
        return self.node.shown(super().release_heartbeat(shard, group_id, member_id, token, now_ms))

    def finish_load(self, shard: int, now_ms: int) -> Decision:
        self.node.watcher.began_to_lead(self.node, shard)
        return self.node.shown(super().finish_load(shard, now_ms))

    def unload(self, shard: int, now_ms: int) -> Decision:
        return self.node.shown(super().unload(shard, now_ms))

    def delete_offsets(
        self,
        shard: int,
        topics: Mapping[str, TopicId],
        now_ms: int,
        known: Iterable[OffsetsOfGroup] | None = None,
    ) -> Decision:
        return self.node.shown(super().delete_offsets(shard, topics, now_ms, known))

    def hasten(self, now_ms: int) -> Iterator[Decision]:
        for decision in super().hasten(now_ms):
            yield self.node.shown(decision, is_due=True)

    def advance(self, now_ms: int) -> Iterator[Decision]:
        for decision in super().advance(now_ms):
            yield self.node.shown(decision, is_due=True)


class Node:
    """A broker from its start to its crash. It provides what `tests.coordination.groups.invariants` asks
    for."""

    def __init__(
        self,
        name: str,
        coordinator: WatchedCoordinator,
        journal: SimulatedJournal,
        clock: SimulatedClock,
        watcher: Watcher,
        *,
        parks: bool,
    ) -> None:
        """parks: whether heartbeats are parked."""
        self.name = name
        self.parks = parks
        self.is_alive = True
        self.is_touched = False
        self.coordinator = coordinator
        self.watcher = watcher
        self.requests: dict[int, Any] = {}
        self.answers: dict[int, Any] = {}
        coordinator.node = self
        self._clock = clock
        self._journal = journal
        self._runtime = GroupRuntime(coordinator, journal, clock)
        self._runtime.start({})

    # ---- what a cluster does with it

    def submit(self, client_id: str, version: int, request: Any, turn: Turn) -> Any:
        self.is_touched = True
        context = RequestContext(version, client_id, "/127.0.0.1", ADVERTISED, turn=turn)
        if self.parks and type(request) is HeartbeatRequest:
            return later(self._runtime.heartbeat(context, request))
        return later(self._runtime.submit(context, request))

    def write_marker(self, shard: int, marker: EndTxnMarker) -> Deferred[ErrorCode]:
        self.is_touched = True
        answer = later(self._runtime.write_marker(shard, marker))
        return answer if isinstance(answer, Deferred) else succeed(answer)

    def begin_to_lead(self, shard: int) -> None:
        """From now on requests are answered that the shard is loading."""
        self.coordinator.begin_load(shard)

    def lead(self, shard: int, leader_epoch: int) -> None:
        """Raises StorageError."""
        self.is_touched = True
        self._journal.shut_out(shard)
        failures: list[Failure] = []
        self._runtime.load(shard, Leader(leader_epoch=leader_epoch)).addErrback(failures.append)
        for failure in failures:
            self._runtime.unload(shard)  # another broker may be asked to lead it
            failure.raiseException()

    def resign(self, shard: int) -> None:
        self.is_touched = True
        self._runtime.unload(shard)

    def delete_topics(self, *topics: str) -> None:
        self.is_touched = True
        later(self._runtime.topics_deleted(topics))

    def keep_sessions(self, members: Collection[tuple[str, str]], by_ms: int) -> None:
        """Time is about to move ahead, and these members are connected."""
        self.is_touched = True
        self._runtime.keep_sessions(members, by_ms)

    def hasten(self) -> None:
        self.is_touched = True
        self._runtime.hasten()

    def end_turn(self) -> None:
        """Run what the broker's reactor has put off to the end of its turn."""
        self._runtime.end_turn()

    def crash(self, led: Collection[int]) -> None:
        """The broker is gone, and leads nothing."""
        self.is_alive = False
        self._runtime.shards.leads.clear()
        for again in self._runtime.shards.reloads.values():
            again.cancel()
        for shard in led:
            self._journal.shut_out(shard)
        self._runtime._alarm.cancel()

    def leads(self, shard: int) -> bool:
        return self.is_alive and shard in self._runtime.shards.leads

    @property
    def unanswered(self) -> list[Any]:
        """The requests that wait for an answer, but for heartbeats: in a stable group they are parked."""
        waiting = [waiting.request for waiting in self._runtime._waiting.values()]
        return [request for request in waiting if type(request) is not WaitingHeartbeat]

    # ---- what the checks ask

    def shown(self, decision: Decision, *, is_due: bool = False) -> Decision:
        """Show a decision to the checks, and return it; `is_due`: only the passing of time caused it."""
        self.is_touched = True
        self.watcher.decided(self, decision.shard, decision, is_due=is_due)
        return decision

    @property
    def wakes_in_time(self) -> bool:
        """True if a call is scheduled for the next deadline or earlier."""
        deadline_ms = self.coordinator.next_deadline_ms()
        alarm_ms = self._runtime._alarm.at_ms
        return deadline_ms is None or (alarm_ms is not None and alarm_ms <= deadline_ms)

    def groups(self) -> dict[str, ClassicGroup]:
        return {
            group_id: group
            for shard in self.coordinator._shards.values()
            for group_id, group in shard.groups.items()
        }

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms

    def deadline_ms(self, timer: TimerKey) -> int | None:
        return self.coordinator._timers.deadline_ms(timer)
