"""The metrics, read by Prometheus' own client library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from kshim.cluster.client_quotas import QuotaChange, new_entity
from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.coordination.groups.trigger import Trigger
from kshim.http import metrics
from kshim.http.families import FAMILIES, HISTOGRAM
from kshim.http.metrics import MOST_SAMPLES
from schemas.api_key import ApiKey
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.heartbeat import HeartbeatRequest
from tests.api.harness import AtOnce
from tests.http.harness import Kshim, billing, commit, create_topic, delays

Told = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(kshim: Kshim, **headers: str) -> Told:
    reply = kshim.get("/metrics", **headers)
    assert reply.status == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(reply.body.decode())
        for sample in family.samples
    }


def value(told: Told, name: str, **labels: str) -> float | None:
    return told.get((name, frozenset(labels.items())))


@pytest.fixture
def kshim() -> Kshim:
    kshim = Kshim()
    billing(kshim)
    return kshim


def test_groups_and_partitions(kshim: Kshim) -> None:
    told = scrape(kshim)
    at = {"topic": "orders", "partition": "0"}
    assert value(told, "kafka_topic_partition_current_offset", **at) == 3
    assert value(told, "kafka_topic_partition_oldest_offset", **at) == 0
    assert value(told, "kafka_topic_partition_leader", **at) == 1
    assert value(told, "kafka_topic_partition_under_replicated_partition", **at) == 0
    assert value(told, "kafka_consumergroup_current_offset", consumergroup="billing", **at) == 2
    assert value(told, "kafka_consumergroup_lag", consumergroup="billing", **at) == 1
    assert value(told, "kafka_consumergroup_members", consumergroup="billing") == 1
    assert value(told, "kshim_consumergroup_state", consumergroup="billing", state="Stable") == 1
    assert value(told, "kshim_consumergroup_state", consumergroup="billing", state="Empty") == 0
    assert (value(told, "kafka_brokers"), value(told, "kshim_ready")) == (1, 1)


def member_joins(kshim: Kshim, group_id: str, topic: str) -> int:
    """A member joins a group of the consumer protocol. Return its epoch."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=(topic,),
        topic_partitions=(),
    )
    answer = kshim.client().ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, 1)
    assert answer.error_code == 0
    return int(answer.member_epoch)


def test_169_groups_by_protocol_and_state(kshim: Kshim) -> None:
    member_joins(kshim, "new", "orders")
    commit(kshim.client(), "offsets alone", "orders", 1)
    told = scrape(kshim)
    counts = {
        (dict(labels)["protocol"], dict(labels)["state"]): count
        for (name, labels), count in told.items()
        if name == "kshim_groups"
    }
    assert {labels for labels, count in counts.items() if count} == {
        ("classic", "Stable"),
        ("classic", "Empty"),
        ("consumer", "Stable"),
    }
    assert sum(counts.values()) == 3
    assert {state for protocol, state in counts if protocol == "consumer"} == {
        *("Empty", "Assigning", "Reconciling", "Stable", "Dead"),
    }


def test_37_a_join_is_one_rebalance(kshim: Kshim) -> None:
    member_joins(kshim, "new", "orders")
    told = scrape(kshim)
    joined = {"protocol": "consumer", "cause": "a member joined", "consumergroup": "new"}
    assert value(told, "kshim_rebalances_total", **joined) == 1


def test_requests(kshim: Kshim) -> None:
    before = scrape(kshim)
    client = kshim.client()
    for _ in range(3):
        client.ask(ApiKey.HEARTBEAT, HeartbeatRequest(group_id="nope", generation_id=1, member_id="m"), 1)
    after = scrape(kshim)
    assert value(before, "kshim_kafka_request_latency_seconds_count", request="Heartbeat") is None
    assert value(after, "kshim_kafka_request_latency_seconds_count", request="Heartbeat") == 3
    for name in ("kshim_kafka_received_bytes_total", "kshim_kafka_sent_bytes_total"):
        more = (value(after, name) or 0) - (value(before, name) or 0)
        assert 3 * 10 <= more < 300
    assert value(after, "kshim_connections", broker="1", state="Reading") == 2


def test_requests_whose_clients_must_wait(kshim: Kshim) -> None:
    of_all = QuotaChange(new_entity([("user", None)]), {"request_percentage": 1e-9})
    kshim.facts.cluster.client_quotas.alter([of_all])
    client = kshim.client()
    heartbeat = HeartbeatRequest(group_id="nope", generation_id=1, member_id="m")
    assert client.ask(ApiKey.HEARTBEAT, heartbeat, 1).throttle_time_ms == 1000
    told = scrape(kshim)
    assert value(told, "kshim_throttled_requests_total", broker="1", quota="request_percentage") == 1
    assert value(told, "kshim_connections", broker="1", state="Muted") == 1
    seen = json.loads(kshim.get("/connections").body)["connections"]
    assert [(each["state"], each["throttled_ms"]) for each in seen if each["throttled_ms"]] == [
        ("Muted", 1000)
    ]


def test_a_request_that_is_refused(kshim: Kshim) -> None:
    kshim.client().connection.dataReceived(b"\x00\x00\x00\x08\x7f\xff\x00\x00\x00\x00\x00\x00")
    assert value(scrape(kshim), "kshim_kafka_requests_refused_total") == 1


def rebalance(trigger: Trigger, took_ms: int, *, is_complete: bool = True) -> Rebalance:
    return Rebalance(
        group_id="g",
        trigger=trigger,
        members=(),
        reason="",
        detail="",
        began_ms=1000,
        ended_ms=1000 + took_ms,
        is_complete=is_complete,
    )


def test_rebalances_by_their_cause() -> None:
    kshim = Kshim()
    recorder = kshim.facts.recorder
    recorder.add(rebalance(Trigger.MEMBER_JOINED, 300))
    recorder.add(rebalance(Trigger.MEMBER_JOINED, 20))
    recorder.add(rebalance(Trigger.MEMBER_LEFT, 4000))
    recorder.add(rebalance(Trigger.MEMBER_LEFT, 1, is_complete=False))
    recorder.add("another event")
    told = scrape(kshim)
    for cause in ("a member joined", "a member left"):
        labels = {"protocol": "classic", "cause": cause, "consumergroup": "g"}
        assert value(told, "kshim_rebalances_total", **labels) == 2
    assert value(told, "kshim_rebalance_duration_seconds_bucket", le="0.5") == 2
    assert value(told, "kshim_rebalance_duration_seconds_count") == 3
    assert value(told, "kshim_rebalance_duration_seconds_sum") == pytest.approx(4.32)


def test_only_so_many_groups_are_counted_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_GROUPS", 2)
    kshim = Kshim()
    for group_id in ("a", "b", "c", "d", "a", "x" * 201):
        kshim.facts.recorder.add(replace(rebalance(Trigger.MEMBER_LEFT, 1), group_id=group_id))
    told = scrape(kshim)
    counts = {
        dict(labels)["consumergroup"]: count
        for (name, labels), count in told.items()
        if name == "kshim_rebalances_total"
    }
    assert counts == {"a": 2, "b": 1, "(others)": 3}


def test_memory(kshim: Kshim) -> None:
    kshim.client().connection.dataReceived(b"\x00\x10\x00\x00" + b"\x00" * 1000)
    told = scrape(kshim)
    assert value(told, "kshim_memory_incomplete_bytes") == 1004
    assert value(told, "kshim_memory_budget_bytes") == 128 * 1024 * 1024
    assert value(told, "process_open_fds") is not None


def test_a_lag_that_is_unknown_is_left_out(kshim: Kshim) -> None:
    commit(kshim.client(), "early", "orders", 1)
    del kshim.facts.cluster.topics["orders"]
    assert not [name for name, labels in scrape(kshim) if name == "kafka_consumergroup_lag"]


def test_names_that_clients_chose(kshim: Kshim) -> None:
    commit(kshim.client(), 'a"b\\c\nd', "orders", 1)
    members = [dict(labels) for name, labels in scrape(kshim) if name == "kafka_consumergroup_members"]
    assert {"consumergroup": 'a"b\\c\nd'} in members


def test_openmetrics(kshim: Kshim) -> None:
    reply = kshim.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert reply.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    names = {family.name for family in parse_openmetrics(reply.body.decode())}
    assert set(FAMILIES) <= names
    assert kshim.get("/metrics").headers["Content-Type"].startswith("text/plain; version=")


def lint(name: str, kind: str, help_: str, labels: tuple[str, ...]) -> Iterator[str]:
    """The complaints that `promtool check metrics` would print."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", name):
        yield "is no name in snake case"
    if name.endswith("_total"):
        yield "gets _total if it is a counter, and only then"
    if re.search(r"_(count|sum|bucket|info)$", name) and name != "kshim_build_info":
        yield "has a reserved ending"
    if re.search(r"(^|_)(ms|s|milliseconds|minutes|kb|mb|kilobytes|gauge|counter|histogram)(_|$)", name):
        yield "has a unit that is no base unit, or its kind"
    if not help_.endswith("."):
        yield "has no help"
    if {"le", "quantile"} & set(labels):
        yield "has a reserved label"
    if kind == HISTOGRAM and not name.endswith("_seconds"):
        yield "has no unit"


def test_names_are_those_that_promtool_likes() -> None:
    faults = {
        name: list(lint(name, family.kind, family.help, family.labels)) for name, family in FAMILIES.items()
    }
    assert {name: found for name, found in faults.items() if found} == {}


def test_it_is_collected_in_slices_and_written_aside(kshim: Kshim, monkeypatch: pytest.MonkeyPatch) -> None:
    create_topic(kshim.client(), "large", 2000)
    turns = delays(kshim.reactor, monkeypatch)
    scrape(kshim)
    assert turns.count(0) >= 4
    assert isinstance(kshim.facts.aside, AtOnce)
    assert kshim.facts.aside.count > 2000 * 7 // MOST_SAMPLES


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text; version=1.0.0"])
def test_a_family_in_several_parts_is_one_family(
    kshim: Kshim, accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group_id in ("a", "b\r# c", "d"):
        commit(kshim.client(), group_id, "orders", 1)
    whole = kshim.get("/metrics", Accept=accept).body.split(b"\n")
    monkeypatch.setattr("kshim.http.metrics.MOST_SAMPLES", 1)
    parts = kshim.get("/metrics", Accept=accept).body.split(b"\n")
    changing = (b"process_", b"kshim_connections", b"kshim_kafka_", b"kshim_memory_")
    assert [line for line in parts if not line.startswith(changing)] == [
        line for line in whole if not line.startswith(changing)
    ]
    assert parts.count(b"# TYPE kafka_consumergroup_members gauge") == 1
