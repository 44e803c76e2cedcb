"""The shell around a coordinator: passes it the time, makes its records durable, delivers its replies.

    request ──> coordinator.handle ──> Decision(shard, records, replies, reports, endings)
                    encode ──> replay ──> all decisions of a shard in one turn: one append
                                                      │ durable
                                          replies by token, endings

So no client gets an answer that a crash could undo. A record that cannot be encoded fails the request that
needs it. When an append fails, or a decision half way, the shard is loaded again from its journal.

Each shard is led by one broker, or by none: `load` and `unload` change that. All brokers of a process share
one runtime of groups and one of transactions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, NoReturn, Protocol

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.callers import RequestContext
from kshim.coordination.alarm import Alarm
from kshim.coordination.decision import ANY_NODE, Caller, Decision, HalfDecided, Reply
from kshim.coordination.leads import Append, Entry, Lead
from kshim.coordination.led_shards import LedShards, Servable
from kshim.coordination.loading import Leader, Loader
from kshim.storage.clock import Call, Clock
from kshim.storage.interfaces import NO_PRODUCER, Journal
from kshim.turns.promise import Answer, Promise
from kshim.turns.turn import Signal
from schemas.error_code import ErrorCode

logger = logging.getLogger(__name__)


class Coordinator(Servable, Protocol):
    """A coordinator as a runtime needs it. It knows no clock, no disk and no network."""

    def handle(self, caller: Caller, request: Any, now_ms: int) -> Decision:
        """Decide one request. May raise HalfDecided, like `advance`."""

    def refuse(self, request: Any, caller: Caller, error: ErrorCode) -> object:
        """The response that says `error` and nothing else."""

    def as_kept(self, request: Any) -> object:
        """The request, or a smaller copy of it with all that `refuse` needs: it may be parked for long."""

    def encode(self, record: Any) -> Entry:
        """The key and value of a record. Raises ValueError if it cannot be written."""

    def next_deadline_ms(self) -> int | None:
        """When to call `advance`: perhaps too early, never too late. None if nothing will come due."""

    def advance(self, now_ms: int) -> Iterator[Decision]:
        """Do all that is due. The caller carries out each decision before it takes the next."""


class _Waiting(Promise[Any]):
    """The promise of an answer, with the request that it answers."""

    def __init__(self, request: object, caller: Caller) -> None:
        self.request = request
        self.caller = caller


class Runtime:
    """Runs a coordinator over a journal. Everything happens on the reactor thread."""

    def __init__(
        self,
        coordinator: Coordinator,
        journal: Journal,
        clock: Clock,
        end: Callable[[Lead, Any], None] | None = None,
        loader: Loader | None = None,
        announce: Callable[[object], None] | None = None,
        may_answer: Callable[[int], bool] | None = None,
    ) -> None:
        """clock: gives the time that is passed to the coordinator. People may hold it or move it ahead; turns
        and retries go by the loader's clock. end: called with each ending of a decision, once it is durable.
        loader: shared with other runtimes. announce: called with every report. may_answer: returns True while
        it is sure that no other process leads the shard; else the shard's replies wait for an append, or for
        the journal to prove it. None stands for always sure.
        """
        self._coordinator = coordinator
        self._journal = journal
        self._clock = clock
        self._end = end
        self._announce = announce
        self._may_answer = may_answer
        self._is_running = False
        loader = loader or Loader(clock)
        self._real_clock = loader.clock
        self.shards = LedShards(self, coordinator, journal, loader)
        self._waiting: dict[int, _Waiting] = {}
        self._tokens = count()
        self._alarm = Alarm(clock, coordinator.next_deadline_ms, self._do_due, self._real_clock)
        self._turn: list[Lead] = []
        """The shards that have gathered records in this turn."""
        self._turn_ends: Call | None = None

    # ---- start and stop

    def start(self, leaders: Mapping[int, Leader] | None = None) -> None:
        """Answer requests from now on, and begin to load the shards that have a leader; see
        `LedShards.start`. Raises StorageError.
        """
        self._is_running = True
        self.shards.start(leaders)
        self._alarm.set()

    def stop(self) -> None:
        """Give up every shard; parked requests are answered NOT_COORDINATOR, so that clients look elsewhere.

        Later requests are answered COORDINATOR_NOT_AVAILABLE.
        """
        self._is_running = False
        self.shards.give_up_all()
        self.end_turn()  # nothing is left to append
        self._alarm.cancel()

    @property
    def is_running(self) -> bool:
        return self._is_running

    # ---- requests

    def submit(self, context: RequestContext, request: object) -> Answer[Any]:
        """The response to `request`, or the promise of it while it is parked or waits for the journal."""
        return self._ask(self._caller(context), request)

    def submit_as_broker(self, api_version: int, request: object) -> Answer[Any]:
        """Like `submit`, for a request from a broker; the broker that leads the shard answers it."""
        return self._ask(Caller(next(self._tokens), api_version, node_id=ANY_NODE), request)

    def _caller(self, it: RequestContext) -> Caller:
        return Caller(next(self._tokens), it.api_version, it.client_id, it.client_host, it.node_id)

    def _ask(self, caller: Caller, request: object) -> Answer[Any]:
        answer = self._answer(caller, request)
        if answer.__class__ is _Waiting:
            answer.request = self._coordinator.as_kept(request)
        return answer

    def _answer(self, caller: Caller, request: Any) -> Any | _Waiting:
        token = caller.token
        if not self._is_running:
            return self._coordinator.refuse(request, caller, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        try:
            decision = self._coordinator.handle(caller, request, self.now_ms())
        except HalfDecided as half:
            self._take_back(half)
        self._alarm.set()
        lead = self.shards.leads.get(decision.shard)
        replies = decision.replies
        answered = not decision.records and len(replies) == 1 and replies[0].token == token
        is_all = answered and decision.marker is None and not decision.reports
        if is_all and (lead is None or self._is_settled(lead)):
            if lead is None:
                self.shards.want(decision.shard)
            return replies[0].response
        assert lead is not None, f"{request} is answered by nobody"
        waiting = self._waiting[token] = _Waiting(request, caller)
        self.carry_out(lead, decision)
        return waiting

    def _take_back(self, half: HalfDecided) -> NoReturn:
        """Load a shard again whose decision has failed, and raise the fault."""
        self.shards.load_anew(self.shards.leads[half.shard])
        raise half.__cause__ or half

    def decide(self, lead: Lead, decide: Callable[[int, int], Decision]) -> None:
        """Carry out `decide(shard, now_ms)`, unless the shard has another lead by now, or none."""
        if self.is_led(lead):
            self.carry_out(lead, decide(lead.shard, self.now_ms()))
            self._alarm.set()

    def settled(self, lead: Lead) -> Deferred[None]:
        """Fire when all that the shard has decided so far is durable, or void."""
        done: Deferred[None] = Deferred()
        if not self.is_led(lead) or not lead.unsettled:
            done.callback(None)
            return done
        last = lead.unsettled[-1]
        if last.settled is None:
            last.settled = Signal()
        last.settled.watch(lambda: done.callback(None))
        return done

    def decide_everywhere(self, decide: Callable[[int, int], Decision]) -> None:
        """Carry out `decide(shard, now_ms)` in each shard that is led, and later in those that load."""
        for loading in self.shards.loading.values():
            loading.decisions.append(decide)
        for lead in list(self.shards.leads.values()):
            self.decide(lead, decide)

    def when_led(self, shard: int, decide: Callable[[int, int], Decision]) -> bool:
        """Append all earlier decisions of the shard, then carry out `decide(shard, now_ms)`; return True if
        that was done. If the shard is loading, return False, and do it as soon as the shard is served.
        """
        loading, lead = self.shards.loading.get(shard), self.shards.leads.get(shard)
        if loading is not None:
            loading.decisions.append(decide)
        if lead is None:
            return False
        self.end_turn()
        self.decide(lead, decide)
        return self.is_led(lead)

    def is_led(self, lead: Lead) -> bool:
        """True if `lead` is still the present lead of its shard."""
        return self.shards.leads.get(lead.shard) is lead

    # ---- decisions

    def carry_out(self, lead: Lead, decision: Decision) -> None:
        for report in decision.reports:
            self._report(report)
        if decision.records or decision.marker is not None:
            self._gather(lead, decision)
        elif lead.unsettled:
            lead.unsettled[-1].replies.extend(decision.replies)
            lead.unsettled[-1].endings.extend(decision.endings)
        elif not self._is_settled(lead):
            self._gather(lead, decision)
        else:
            self._release(lead, decision.replies, decision.endings)

    def _is_settled(self, lead: Lead) -> bool:
        """True if a reply of the shard may be sent at once."""
        return not lead.unsettled and (self._may_answer is None or self._may_answer(lead.shard))

    def _report(self, report: object) -> None:
        """Log a report, and pass it to `announce`."""
        logger.log(logging.DEBUG if getattr(report, "is_minor", False) else logging.INFO, "%s", report)
        if self._announce is not None:
            self._announce(report)

    def _gather(self, lead: Lead, decision: Decision) -> None:
        """Replay a decision's records, and gather them for the append at the end of this turn."""
        try:
            entries = [self._coordinator.encode(record) for record in decision.records]
        except ValueError as error:
            name = f"{self._coordinator.topic}-{lead.shard}"
            logger.error("%s: a record cannot be written: %s", name, error)
            self._void(decision.replies, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        append = lead.gathering
        if append is not None and not append.takes(decision):
            self._append(lead)
            append = None
            if not self.is_led(lead):  # the journal has failed at once
                self._void(decision.replies, ErrorCode.NOT_COORDINATOR)
                return
        if decision.marker is not None:
            self._coordinator.replay_marker(lead.shard, decision.marker)
        else:
            self._coordinator.replay(lead.shard, decision.records, decision.producer)
        if append is None:
            append = lead.gathering = Append(decision.producer, decision.marker)
            lead.unsettled.append(append)
            self._turn.append(lead)
            if self._turn_ends is None:
                self._turn_ends = self._real_clock.callLater(0, self._turn_is_over)
        append.entries += entries
        for key, value in entries:
            append.size += len(key) + len(value or b"")
        append.replies += decision.replies
        append.endings += decision.endings

    def _void(self, replies: Iterable[Reply], error: ErrorCode) -> None:
        """Answer with `error` instead of these replies, because their decision is void."""
        for token, _ in replies:
            waiting = self._waiting.get(token)
            if waiting is not None:
                refusal = self._coordinator.refuse(waiting.request, waiting.caller, error)
                self._deliver([Reply(token, refusal)])

    def _turn_is_over(self) -> None:
        self._turn_ends = None
        self.end_turn()

    def end_turn(self) -> None:
        """Append what the shards have gathered in this turn of the reactor, as happens at its end anyway."""
        if self._turn_ends is not None:
            self._turn_ends.cancel()
            self._turn_ends = None
        turn, self._turn = self._turn, []
        for lead in turn:
            self._append(lead)

    def _append(self, lead: Lead) -> None:
        append, lead.gathering = lead.gathering, None
        if append is None:
            return
        self.shards.in_flight[lead.shard] += 1
        if append.marker is not None:
            appended = self._journal.end_transaction(lead.shard, append.marker)
        elif not append.entries:
            appended = self._journal.prove_leadership(lead.shard)
        else:
            producer = append.producer or NO_PRODUCER
            appended = self._journal.append(lead.shard, append.entries, self.now_ms(), producer=producer)
        appended.addCallbacks(self._settled, self._failed, callbackArgs=(lead,), errbackArgs=(lead,))

    def _settled(self, _: object, lead: Lead) -> None:
        if self.is_led(lead):
            append = lead.unsettled.popleft()
            self._release(lead, append.replies, append.endings)
            if append.settled is not None:
                append.settled.fire()
        self.shards.landed(lead.shard)

    def _failed(self, failure: Failure, lead: Lead) -> None:
        """Load the shard again: the journal did not take an append, so all decisions since then are void."""
        shard = lead.shard
        if self.is_led(lead):
            name = f"{self._coordinator.topic}-{shard}"
            logger.error("%s: an append failed, so the shard is loaded again: %s", name, failure.value)
            self.shards.load_anew(lead)
        self.shards.landed(shard)

    def _release(
        self, lead: Lead, replies: list[Reply] | tuple[Reply, ...], endings: list[object] | tuple[object, ...]
    ) -> None:
        self._deliver(replies)
        for ending in endings:
            assert self._end is not None
            self._end(lead, ending)

    def _deliver(self, replies: list[Reply] | tuple[Reply, ...]) -> None:
        afterwards: dict[Callable[[], object], None] = {}
        for token, response in replies:
            waiting = self._waiting.pop(token, None)
            if waiting is not None and (do := waiting.answer(response)) is not None:
                afterwards[do] = None
        for do in afterwards:
            do()

    # ---- shards

    def load(self, shard: int, leader: Leader) -> Deferred[None]:
        """Make `leader` the leader of `shard`, which refuses requests as loading until its journal is
        replayed.

        Fires when the shard is served, or given up before that. Fails with StorageError if the journal cannot
        be read; then the shard is not led. As in Kafka, a leader with an earlier epoch is ignored, and a
        broker that leads the shard already goes on without loading.
        """
        return self.shards.load(shard, leader)

    def unload(self, shard: int, leader_epoch: int | None = None) -> None:
        """Give up `shard`: parked and later requests for it are answered NOT_COORDINATOR.

        leader_epoch: the epoch of the change; nothing happens if the shard is led in this one or a later one.
        """
        self.shards.unload(shard, leader_epoch)

    def lost(self, lead: Lead, decision: Decision) -> None:
        """Answer what a shard had promised that is led no more; see `Owner.lost`."""
        for report in decision.reports:
            self._report(report)
        self._deliver(decision.replies)
        void = [reply for append in lead.unsettled for reply in append.replies]
        self._void(void, ErrorCode.NOT_COORDINATOR)
        for append in lead.unsettled:
            if append.settled is not None:
                append.settled.fire()

    # ---- time

    def set_alarm(self) -> None:
        """Schedule the next look at what is due."""
        self._alarm.set()

    @property
    def is_behind(self) -> bool:
        """True if work is due that has not been done."""
        deadline_ms = self._coordinator.next_deadline_ms()
        return self._is_running and deadline_ms is not None and deadline_ms <= self.now_ms()

    def now_ms(self) -> int:
        """The coordinator's time, in ms since 1970."""
        return int(self._clock.seconds() * 1000)

    def _do_due(self, now_ms: int) -> Iterator[None]:
        return self.carry_out_each(self._coordinator.advance(now_ms))

    def carry_out_each(self, decisions: Iterator[Decision]) -> Iterator[None]:
        """Carry out a decision for each step of the iterator."""
        try:
            for decision in decisions:
                self.carry_out(self.shards.leads[decision.shard], decision)
                yield
        except HalfDecided as half:
            self._take_back(half)
