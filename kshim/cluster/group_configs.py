"""The configs of a group: checks of them in Kafka's order, and the values that the coordinator uses.

A group's configs may be set before it exists, and outlive it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kshim.cluster.broker_configs import BrokerConfigs, broker_text
from kshim.configs import java
from kshim.configs.groups import BOUNDS, GROUP_CONFIGS, Bounds

SESSION, INTERVAL, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)
KINDS = ("consumer", "share", "streams")
TAGS, ASSIGNOR, QUEUE = (
    "streams.rack.aware.assignment.tags",
    "streams.assignor.name",
    "errors.deadletterqueue.topic.name",
)


class GroupValues(NamedTuple):
    """The values of a consumer group's configs, within the broker's bounds."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    is_interval_set: bool
    """True if somebody has set the heartbeat interval, for the group or for the broker."""


def group_values(overrides: Mapping[str, str], broker: BrokerConfigs) -> GroupValues:
    """The values for a group with these overrides.

    An override may be out of bounds, if the broker's bounds were changed after it was set.
    """

    def value(name: str) -> int:
        bounds = BOUNDS[name]
        found = _number(name, overrides, broker)
        return min(max(found, _limit(bounds.low, broker)), _limit(bounds.high, broker))

    by_broker = next(broker.settings([f"group.{INTERVAL}"]), None)
    return GroupValues(
        value(SESSION), value(INTERVAL), value(ASSIGNMENT), INTERVAL in overrides or by_broker is not None
    )


def fault_in_group_configs(configs: Mapping[str, str], broker: BrokerConfigs) -> str:
    """The fault in all configs of a group, in Kafka's words; "" if there is none."""
    unknown = next((name for name in configs if name not in GROUP_CONFIGS), None)
    if unknown is not None:
        return f"Unknown group config name: {unknown}"
    if TAGS in configs:
        tags = java.items(java.trim(configs[TAGS]))
        if len(set(tags)) < len(tags):
            return f"{TAGS} must not contain duplicate tag keys."
    faults = (row.fault(configs[name]) for name, row in GROUP_CONFIGS.items() if name in configs)
    return next(filter(None, faults), "") or next(_contradictions(configs, broker), "")


def _contradictions(configs: Mapping[str, str], broker: BrokerConfigs) -> Iterator[str]:
    """Faults of configs that are legal by themselves."""
    for name, bounds in BOUNDS.items():
        if name in configs:
            fault = _fault_in_bounds(name, _number(name, configs, broker), bounds, broker)
            if fault:
                yield fault
    if ASSIGNOR in configs:
        known, name = java.items(broker_text("group.streams.assignors", broker)), java.trim(configs[ASSIGNOR])
        if name not in known:
            registered = f"Registered assignors are: [{', '.join(known)}]."
            yield f"{ASSIGNOR} '{name}' is not a registered task assignor. {registered}"
    for kind in KINDS:
        session, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _number(session, configs, broker) <= _number(interval, configs, broker):
            yield f"{session} must be greater than {interval}"
    if java.trim(configs.get(QUEUE, "")).startswith("__"):
        yield f"{QUEUE}: DLQ topic name must not start with '__'"


def _fault_in_bounds(name: str, value: int, bounds: Bounds, broker: BrokerConfigs) -> str:
    high = _limit(bounds.high, broker)
    if not bounds.low:
        return f"{name} must be less than or equal to {high}" if value > high else ""
    low = _limit(bounds.low, broker)
    return "" if low <= value <= high else f"{name} must be in the range {low} to {high} inclusive."


def fault_in_intervals(dynamic: Mapping[str, str], broker: BrokerConfigs) -> str | None:
    """The fault in the assignment intervals among a broker's dynamic configs, in Kafka's words."""
    for kind in KINDS:
        name, bounds = f"group.{kind}.assignment.interval.ms", BOUNDS[f"{kind}.assignment.interval.ms"]
        if name in dynamic:
            value = _int(dynamic[name])
            if value < _limit(bounds.low, broker):
                return f"{name} must be greater than or equal to {bounds.low}"
            if value > _limit(bounds.high, broker):
                return f"{name} must be less than or equal to {bounds.high}"
    return None


def _number(name: str, overrides: Mapping[str, str], broker: BrokerConfigs) -> int:
    """The number that is in force: the group's own, else the broker's."""
    return _int(overrides[name] if name in overrides else broker_text(GROUP_CONFIGS[name].synonym, broker))


def _limit(name: str, broker: BrokerConfigs) -> int:
    return _int(broker_text(name, broker))


def _int(text: str) -> int:
    return java.integer(java.trim(text), java.INT_MAX)


def stored_key(group_id: str) -> bytes:
    """A key of fixed length for a group, whose id may be long."""
    from hashlib import sha256

    return sha256(json.dumps(group_id).encode()).hexdigest().encode()


def encode_group(group_id: str, configs: Mapping[str, str]) -> bytes | None:
    """The stored value of a group's configs; None, which deletes the key, if it has none."""
    return json.dumps([group_id, configs]).encode() if configs else None


def decode_group(stored: bytes) -> tuple[str, dict[str, str]]:
    """The id and the configs of a group."""
    group_id, configs = json.loads(stored)
    return group_id, configs
