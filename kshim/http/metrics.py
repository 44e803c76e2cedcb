"""GET /metrics, for Prometheus: collected in slices, written aside, and sent in pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import asdict
from functools import partial

from kshim import __version__
from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.http.answers import Answer, Asked
from kshim.http.facts import Facts
from kshim.http.families import FAMILIES, Format, Part, Samples, add, new_samples
from kshim.http.many_samples import CLASSIC, CONSUMER, MANY_SAMPLES
from kshim.recorder.recorder import Event
from kshim.storage.durations import Durations
from kshim.turns.slices import Slices

CONNECTION_US = 5
MOST_GROUPS = 1_000
"""Most groups whose rebalances are counted by name."""
MOST_GROUP_ID = 200
OTHERS = "(others)"
"""In place of the name of any other group."""
MOST_SAMPLES = 1_000
"""Samples that are written aside in one go."""


class Metrics:
    """Counts rebalances from the start of the listener on. All other metrics are read at each scrape."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._by_cause: Counter[tuple[str, str, str]] = Counter()
        """The number of rebalances, by protocol, cause and group."""
        self._named: set[str] = set()
        """The groups that are counted by name."""
        self._rebalances = Durations()
        facts.recorder.watch(self._recorded)

    async def answer(self, facts: Facts, asked: Asked) -> Answer:
        """GET /metrics"""
        format_ = await facts.aside.run(partial(Format, asked.headers.get("accept", "")))
        return Answer(self._pieces(format_, asked.slices), format_.content_type)

    async def _pieces(self, format_: Format, slices: Slices) -> AsyncGenerator[bytes, None]:
        waiting: list[Part] = []
        async for part in self._parts(slices):
            waiting.append(part)
            if sum(len(each.samples) for each in waiting) >= MOST_SAMPLES:
                yield await self._facts.aside.run(partial(format_.parts, waiting))
                waiting = []
        yield await self._facts.aside.run(lambda: format_.parts(waiting) + format_.end())

    async def _parts(self, slices: Slices) -> AsyncIterator[Part]:
        """All families, in the order of FAMILIES. One with many samples comes in several parts."""
        few = new_samples()
        self._of_server(few)
        await self._of_connections(few, slices)
        for name in FAMILIES:
            samples, is_first = few[name], True
            if name in MANY_SAMPLES:
                async for sample in MANY_SAMPLES[name](self._facts, slices):
                    samples.append(sample)
                    if len(samples) >= MOST_SAMPLES:
                        yield Part(name, samples, is_first)
                        samples, is_first = [], False
            yield Part(name, samples, is_first)

    def _recorded(self, event: Event) -> None:
        if event.kind != Rebalance.kind:
            return
        for rebalance in self._facts.recorder.rebalances(event.group_id)[-1:]:
            protocol = CONSUMER if rebalance.is_of_consumers else CLASSIC
            self._by_cause[protocol, rebalance.trigger, self._name(event.group_id)] += 1
            if rebalance.is_complete:
                self._rebalances.add((rebalance.ended_ms - rebalance.began_ms) / 1000)

    def _name(self, group_id: str) -> str:
        """The group's id, or OTHERS if enough groups are counted by name."""
        if group_id not in self._named:
            if len(self._named) >= MOST_GROUPS or len(group_id) > MOST_GROUP_ID:
                return OTHERS
            self._named.add(group_id)
        return group_id

    def _of_server(self, samples: Samples) -> None:
        facts, put = self._facts, partial(add, samples)
        put("kshim_build_info", 1, __version__)
        put("kshim_ready", not facts.why_not_ready())
        put("kafka_brokers", len(facts.cluster.running))
        for labels, count in self._by_cause.items():
            put("kshim_rebalances", count, *labels)
        put("kshim_rebalance_duration_seconds", self._rebalances)
        for request, durations in facts.traffic.durations():
            put("kshim_kafka_request_latency_seconds", durations, request)
        put("kshim_kafka_requests_refused", facts.traffic.refused)
        put("kshim_kafka_received_bytes", facts.traffic.received_bytes)
        put("kshim_kafka_sent_bytes", facts.traffic.sent_bytes)
        for outcome, count in self._logins().items():
            put("kshim_logins", count, outcome)
        for node_id, quotas in facts.quotas.items():
            for quota, count in quotas.throttled.items():
                put("kshim_throttled_requests", count, str(node_id), quota)
        activity = facts.activity()
        put("kshim_storage_refuses_writes", bool(activity.failure))
        put("kshim_storage_queued_writes", activity.queued)
        for operation, durations in activity.durations.items():
            put("kshim_storage_write_duration_seconds", durations, operation)
        for figure in facts.figures():
            put(figure.name, figure.value, *figure.labels)
        put("kshim_memory_unread_bytes", facts.unread.bytes)
        intake = next(iter(facts.listeners.values())).intake
        put("kshim_memory_incomplete_bytes", intake.cut_bytes)
        put("kshim_memory_budget_bytes", intake.max_bytes)

    def _logins(self) -> dict[str, int]:
        """How many logins had each outcome; empty if no listener has SASL."""
        listeners = (each for broker in self._facts.listeners.values() for each in broker)
        gates = next((each.shared.gates for each in listeners if each.shared.gates), None)
        return {} if gates is None else asdict(gates.logins)

    async def _of_connections(self, samples: Samples, slices: Slices) -> None:
        for node_id, listener in self._facts.listeners.items():
            states: Counter[str] = Counter()
            for connection in list(listener.connections):
                await slices.spend(CONNECTION_US)
                states[connection.see().state.name.capitalize()] += 1
            for state, count in states.items():
                add(samples, "kshim_connections", count, str(node_id), state)
