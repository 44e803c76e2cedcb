"""GET /metrics: what Prometheus is told. It is collected in slices and written aside."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from functools import partial

from twisted.internet.defer import Deferred, DeferredLock

from kshim import __version__
from kshim.control.rows import ROW_US as GROUP_US
from kshim.control.rows import offsets
from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.coordination.groups.states import State
from kshim.http.answers import Answer, Asked
from kshim.http.facts import Facts
from kshim.http.families import Samples, add, new_samples, rendered
from kshim.http.topics import PARTITION_US
from kshim.recorder.recorder import Event
from kshim.requests.slices import Slices
from kshim.storage.durations import Durations

CONNECTION_US = 5


class Metrics:
    """Counts rebalances from the start of the listener on, and reads all else when it is asked."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._by_cause: Counter[str] = Counter()
        self._rebalances = Durations()
        self._one_at_a_time = DeferredLock()
        facts.recorder.watch(self._recorded)

    async def answer(self, facts: Facts, asked: Asked) -> Answer:
        """GET /metrics"""
        found: Deferred[Answer] = self._one_at_a_time.run(self._answer, asked)
        return await found

    async def _answer(self, asked: Asked) -> Answer:
        samples = new_samples()
        self._of_server(samples)
        await self._of_connections(samples, asked.slices)
        await self._of_topics(samples, asked.slices)
        await self._of_groups(samples, asked.slices)
        written = partial(rendered, samples, asked.headers.get("accept", ""))
        body, content_type = await self._facts.aside.run(written)
        return Answer(body, content_type)

    def _recorded(self, event: Event) -> None:
        if event.kind != Rebalance.kind:
            return
        for rebalance in self._facts.recorder.rebalances(event.group_id)[-1:]:
            self._by_cause[rebalance.trigger] += 1
            if rebalance.is_complete:
                self._rebalances.add((rebalance.ended_ms - rebalance.began_ms) / 1000)

    def _of_server(self, samples: Samples) -> None:
        facts, put = self._facts, partial(add, samples)
        put("kshim_build_info", 1, __version__)
        put("kshim_ready", not facts.why_not_ready())
        put("kafka_brokers", len(facts.cluster.running))
        for cause, count in self._by_cause.items():
            put("kshim_rebalances", count, cause)
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
        put("kshim_storage_queued_writes", activity.queued)
        for operation, durations in activity.durations.items():
            put("kshim_storage_write_duration_seconds", durations, operation)
        put("kshim_memory_unread_bytes", facts.unread.bytes)
        intake = next(iter(facts.listeners.values())).intake
        put("kshim_memory_incomplete_bytes", intake.cut_bytes)
        put("kshim_memory_budget_bytes", intake.max_bytes)

    def _logins(self) -> dict[str, int]:
        """By their outcome; none where no listener has SASL."""
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

    async def _of_topics(self, samples: Samples, slices: Slices) -> None:
        put, log = partial(add, samples), self._facts.log
        for topic in list(self._facts.cluster.topics.values()):
            put("kafka_topic_partitions", len(topic.partitions), topic.name)
            for partition in topic.partitions:
                await slices.spend(PARTITION_US)
                at = topic.name, str(partition.index)
                offsets = log.offsets(partition.partition_no)
                replicas, in_sync = partition.replicas, partition.isr
                put("kafka_topic_partition_current_offset", offsets.high_watermark, *at)
                put("kafka_topic_partition_oldest_offset", offsets.log_start_offset, *at)
                put("kafka_topic_partition_leader", partition.leader, *at)
                is_preferred = partition.leader in replicas[:1]
                put("kafka_topic_partition_leader_is_preferred", is_preferred, *at)
                put("kafka_topic_partition_replicas", len(replicas), *at)
                put("kafka_topic_partition_in_sync_replica", len(in_sync), *at)
                is_under_replicated = len(in_sync) < len(replicas)
                put("kafka_topic_partition_under_replicated_partition", is_under_replicated, *at)

    async def _of_groups(self, samples: Samples, slices: Slices) -> None:
        put = partial(add, samples)
        for group_id in self._facts.groups.group_ids():
            await slices.spend(GROUP_US)
            group = self._facts.groups.see(group_id)
            if group is None:
                continue
            put("kafka_consumergroup_members", len(group.members), group_id)
            put("kshim_consumergroup_generation", group.generation, group_id)
            for state in State:
                put("kshim_consumergroup_state", group.state is state, group_id, state)
            async for offset in offsets(self._facts, slices, group):
                at = group_id, offset["topic"], str(offset["partition"])
                put("kafka_consumergroup_current_offset", offset["committed"], *at)
                if offset["lag"] is not None:
                    put("kafka_consumergroup_lag", offset["lag"], *at)
