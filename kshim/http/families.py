"""The table of metrics, with their names, kinds and meanings, and how they are written for Prometheus.

Metrics that kafka_exporter has, too, have its names, so that dashboards and alerts made for it work. Metrics
that only a broker can measure have Redpanda's names, with kshim in place of redpanda. docs/http.md explains
them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kshim.storage.durations import Durations, Measured

if TYPE_CHECKING:
    from prometheus_client.core import Metric

GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"


class Family(NamedTuple):
    """A metric with all its labels."""

    kind: str
    help: str
    labels: tuple[str, ...] = ()


_PARTITION = ("topic", "partition")
_OF_GROUP = ("consumergroup", "topic", "partition")

FAMILIES: Final[Mapping[str, Family]] = {
    "kafka_brokers": Family(GAUGE, "Brokers that run."),
    "kafka_topic_partitions": Family(GAUGE, "Partitions of a topic.", ("topic",)),
    "kafka_topic_partition_current_offset": Family(GAUGE, "High watermark of a partition.", _PARTITION),
    "kafka_topic_partition_oldest_offset": Family(GAUGE, "Log start offset of a partition.", _PARTITION),
    "kafka_topic_partition_leader": Family(
        GAUGE, "Node id of the leader of a partition, -1 if there is none.", _PARTITION
    ),
    "kafka_topic_partition_leader_is_preferred": Family(
        GAUGE, "1 if the first replica of a partition leads.", _PARTITION
    ),
    "kafka_topic_partition_replicas": Family(GAUGE, "Replicas of a partition.", _PARTITION),
    "kafka_topic_partition_in_sync_replica": Family(GAUGE, "In-sync replicas of a partition.", _PARTITION),
    "kafka_topic_partition_under_replicated_partition": Family(
        GAUGE, "1 if not all replicas of a partition are in sync.", _PARTITION
    ),
    "kafka_consumergroup_current_offset": Family(GAUGE, "Offset that a group has committed.", _OF_GROUP),
    "kafka_consumergroup_lag": Family(
        GAUGE, "Records between the committed offset and the high watermark.", _OF_GROUP
    ),
    "kafka_consumergroup_members": Family(GAUGE, "Members of a group.", ("consumergroup",)),
    "kshim_consumergroup_state": Family(
        GAUGE, "1 for the state that a group is in.", ("consumergroup", "state")
    ),
    "kshim_consumergroup_generation": Family(
        GAUGE, "Generation of a group; of a consumer group, its epoch.", ("consumergroup",)
    ),
    "kshim_groups": Family(GAUGE, "Groups that speak a protocol and are in a state.", ("protocol", "state")),
    "kshim_rebalances": Family(
        COUNTER,
        "Rebalances that are over, by the group's protocol, by cause and by group; (others) stands for all "
        "groups after the first 1,000.",
        ("protocol", "cause", "consumergroup"),
    ),
    "kshim_rebalance_duration_seconds": Family(
        HISTOGRAM, "From what set a rebalance off until all members had their assignment."
    ),
    "kshim_kafka_request_latency_seconds": Family(
        HISTOGRAM,
        "From the arrival of a request to its reply, with what it waited for: a heartbeat for a rebalance, a "
        "fetch for records. Of requests that are answered at once one stands for a few.",
        ("request",),
    ),
    "kshim_kafka_requests_refused": Family(
        COUNTER, "Requests that were answered by closing their connection."
    ),
    "kshim_kafka_received_bytes": Family(COUNTER, "Bytes of all requests."),
    "kshim_kafka_sent_bytes": Family(COUNTER, "Bytes of all replies."),
    "kshim_connections": Family(GAUGE, "Connections of clients.", ("broker", "state")),
    "kshim_logins": Family(
        COUNTER,
        "Exchanges of SASL that succeeded or failed, and connections that were closed as they did not "
        "authenticate (stalled) or not again (expired).",
        ("outcome",),
    ),
    "kshim_throttled_requests": Family(
        COUNTER, "Requests whose clients had to wait because of a quota.", ("broker", "quota")
    ),
    "kshim_storage_refuses_writes": Family(GAUGE, "1 while writes are refused: the disk is full, or fails."),
    "kshim_storage_queued_writes": Family(GAUGE, "Writes that wait for the disk."),
    "kshim_storage_write_duration_seconds": Family(
        HISTOGRAM, "Writes to the log with their syncs (commit), and the syncs alone (sync).", ("operation",)
    ),
    "kshim_memory_unread_bytes": Family(
        GAUGE, "Requests without an answer, and replies that clients have not read."
    ),
    "kshim_memory_incomplete_bytes": Family(GAUGE, "Requests that have not arrived whole."),
    "kshim_memory_budget_bytes": Family(
        GAUGE, "Most that unread and incomplete bytes may be (queued.max.request.bytes)."
    ),
    "kshim_upstream_answers": Family(GAUGE, "1 while the upstream answers."),
    "kshim_upstream_broker_runs": Family(GAUGE, "1 while a broker of the upstream runs.", ("broker",)),
    "kshim_upstream_shards_assigned": Family(GAUGE, "Shards of groups that this kshim is to lead."),
    "kshim_upstream_shards_led": Family(GAUGE, "Shards of groups that this kshim leads."),
    "kshim_upstream_shards_taken_over": Family(COUNTER, "How often this kshim has begun to lead a shard."),
    "kshim_upstream_shards_lost": Family(
        COUNTER, "How often this kshim has lost a shard that it had not handed over."
    ),
    "kshim_upstream_proof_age_seconds": Family(
        GAUGE,
        "Age of the oldest of the last proofs that no other kshim leads a shard of this one; above "
        "upstream.groups.lease.ms its groups wait.",
    ),
    "kshim_upstream_journal_queued_writes": Family(
        GAUGE, "Writes of groups and offsets that the upstream has not acknowledged."
    ),
    "kshim_upstream_journal_lag_seconds": Family(GAUGE, "How long the oldest of them has waited."),
    "kshim_upstream_offsets_uncopied": Family(
        GAUGE, "Committed offsets whose copies the upstream has not acknowledged."
    ),
    "kshim_upstream_offsets_lag_seconds": Family(GAUGE, "How long the oldest of them has waited."),
    "kshim_ready": Family(GAUGE, "1 when clients can use all of the server."),
    "kshim_build_info": Family(GAUGE, "1; the label has the version.", ("version",)),
}
"""Families by name. Prometheus gets the name of a counter with _total behind it."""


class Figure(NamedTuple):
    """A sample that a backend adds to those of every server."""

    name: str
    """The name of its family."""
    value: float
    labels: tuple[str, ...] = ()


Value = float | Durations
Sample = tuple[Sequence[str], float | tuple[Sequence[float], Measured]]
"""The labels' values, and a number; or, for a histogram, its bounds in seconds and what was measured."""
Samples = dict[str, list[Sample]]
"""Samples by the name of their family."""


class Part(NamedTuple):
    """Some samples of one family."""

    name: str
    samples: Sequence[Sample]
    is_first: bool
    """True for the family's first part, which is written with the family's kind and meaning."""


def new_samples() -> Samples:
    """An empty list for each family."""
    return {name: [] for name in FAMILIES}


def add(samples: Samples, name: str, value: Value, *labels: str) -> None:
    """Add one sample. labels: values, in the order of the family's labels."""
    measured = (value.bounds_s, value.measured()) if isinstance(value, Durations) else value
    samples[name].append((labels, measured))


class Format:
    """Writes samples as a client of /metrics accepts them. Takes long; use it aside."""

    def __init__(self, accept: str) -> None:
        """Choose the format for an Accept header. Imports prometheus_client, which takes long, too."""
        from prometheus_client.exposition import choose_encoder

        self._encode, self.content_type = choose_encoder(accept)

    def parts(self, parts: Sequence[Part]) -> bytes:
        """Return parts as text. All calls together get the parts in the order of their families."""
        return b"".join(map(self._part, parts))

    def end(self) -> bytes:
        """Return the metrics of the process, which end the answer."""
        from prometheus_client import ProcessCollector

        return self._encode(ProcessCollector(registry=None))

    def _part(self, part: Part) -> bytes:
        text: bytes = self._encode(_Collected(part)).removesuffix(b"# EOF\n")
        while not part.is_first and text.startswith(b"# "):
            text = text.partition(b"\n")[2]
        return text


class _Collected:
    """A part as prometheus_client reads it."""

    def __init__(self, part: Part) -> None:
        self._part = part

    def collect(self) -> Iterator[Metric]:
        yield _metric(self._part.name, self._part.samples)


def _metric(name: str, samples: Sequence[Sample]) -> Metric:
    from prometheus_client import core
    from prometheus_client.utils import floatToGoString

    kind, help_, labels = FAMILIES[name]
    if kind == HISTOGRAM:
        histogram = core.HistogramMetricFamily(name, help_, labels=labels)
        for values, value in samples:
            assert isinstance(value, tuple)
            bounds_s, measured = value
            bounds = [*map(floatToGoString, bounds_s), "+Inf"]
            histogram.add_metric(
                values, buckets=list(zip(bounds, measured.counts, strict=True)), sum_value=measured.sum_s
            )
        return histogram
    cls = core.CounterMetricFamily if kind == COUNTER else core.GaugeMetricFamily
    metric = cls(name, help_, labels=labels)
    for values, value in samples:
        assert not isinstance(value, tuple)
        metric.add_metric(values, value)
    return metric
