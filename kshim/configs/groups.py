"""The group configs of Apache Kafka 4.4, one row each, in Kafka's order.

All of them are accepted, checked and stored. Those of share groups and streams groups have no effect, because
such groups are not served.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kshim.configs.definition import (
    Check,
    ConfigType,
    Definition,
    any_value,
    between,
    invalid,
    no_empty_item,
    one_of,
)
from kshim.configs.java import duration_ns

_NO_EFFECT = "It has no effect in kshim."
_BY_DURATION = "by_duration:"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig(Definition):
    """One row of the table."""

    doc: str
    synonym: str = ""
    """The broker property that sets the default of this config; empty if there is none."""
    effect: bool = False
    """True if it changes what kshim does."""
    internal: bool = False
    """True if Kafka lists it only if it was set, with the text as given."""

    @property
    def documentation(self) -> str:
        return self.doc if self.effect else f"{self.doc} {_NO_EFFECT}"


def _offset_reset(name: str, value: object) -> str:
    assert isinstance(value, str)
    duration = value.removeprefix(_BY_DURATION)
    if value in ("earliest", "latest") or (duration != value and _is_positive(duration)):
        return ""
    fault = (
        f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' or "
        "of the format 'by_duration:<PnDTnHnMn.nS>'."
    )
    return invalid(name, value, fault)


def _is_positive(duration: str) -> bool:
    try:
        return duration_ns(duration) >= 0
    except ValueError:
        return False


def _row(
    name: str, type: ConfigType, default: str, check: Check, synonym: str, doc: str, **more: bool
) -> GroupConfig:
    return GroupConfig(name=name, type=type, default=default, check=check, synonym=synonym, doc=doc, **more)


def _int(name: str, default: int, low: int, doc: str, **more: bool) -> GroupConfig:
    return _row(name, ConfigType.INT, str(default), between(low), f"group.{name}", doc, **more)


def _bool(name: str, default: str, synonym: str, doc: str, **more: bool) -> GroupConfig:
    return _row(name, ConfigType.BOOLEAN, default, any_value, synonym, doc, **more)


def _offload(name: str) -> GroupConfig:
    doc = "If true, targets are computed on a thread of their own."
    return _bool(name, "true", f"group.{name}", doc, internal=True)


_ROWS = (
    _int(
        "consumer.session.timeout.ms",
        45000,
        1,
        "After how long a silent member of the consumer group is removed.",
        effect=True,
    ),
    _int(
        "consumer.heartbeat.interval.ms",
        5000,
        1,
        "How often members of the consumer group are to send heartbeats.",
        effect=True,
    ),
    _int(
        "consumer.assignment.interval.ms",
        1000,
        0,
        "How long after an assignment the consumer group may compute the next one.",
        effect=True,
    ),
    _offload("consumer.assignor.offload.enable"),
    _int("share.session.timeout.ms", 45000, 1, "Like consumer.session.timeout.ms, for a share group."),
    _int("share.heartbeat.interval.ms", 5000, 1, "Like consumer.heartbeat.interval.ms, for a share group."),
    _int("share.record.lock.duration.ms", 30000, 1000, "How long a member may keep a record."),
    _int("share.delivery.count.limit", 5, 2, "How often a record is delivered at most."),
    _int("share.partition.max.record.locks", 2000, 100, "Largest number of records that members keep."),
    _row(
        "share.auto.offset.reset",
        ConfigType.STRING,
        "latest",
        _offset_reset,
        "",
        "Where a share group begins: earliest, latest, or by_duration:PnDTnHnMn.nS.",
    ),
    _row(
        "share.isolation.level",
        ConfigType.STRING,
        "read_uncommitted",
        one_of("read_committed", "read_uncommitted"),
        "",
        "Whether a share group gets the records of transactions that were aborted.",
    ),
    _bool("share.renew.acknowledge.enable", "true", "", "If true, members may keep a record for longer."),
    _int("share.assignment.interval.ms", 1000, 0, "Like consumer.assignment.interval.ms, for a share group."),
    _offload("share.assignor.offload.enable"),
    _int("streams.session.timeout.ms", 45000, 1, "Like consumer.session.timeout.ms, for a streams group."),
    _int(
        "streams.heartbeat.interval.ms", 5000, 1, "Like consumer.heartbeat.interval.ms, for a streams group."
    ),
    _int("streams.num.standby.replicas", 0, 0, "Number of standby tasks for each task."),
    _int("streams.initial.rebalance.delay.ms", 3000, 0, "How long a new streams group waits for members."),
    _int(
        "streams.assignment.interval.ms",
        1000,
        0,
        "Like consumer.assignment.interval.ms, for a streams group.",
    ),
    _offload("streams.assignor.offload.enable"),
    _row(
        "streams.rack.aware.assignment.tags",
        ConfigType.LIST,
        "",
        no_empty_item,
        "group.streams.rack.aware.assignment.tags",
        "Tags of clients over whose values standby tasks are spread.",
        repeats=True,
    ),
    _row(
        "streams.assignor.name",
        ConfigType.STRING,
        "sticky",
        any_value,
        "group.streams.assignors",
        "The assignor of a streams group.",
    ),
    _row(
        "errors.deadletterqueue.topic.name",
        ConfigType.STRING,
        "",
        any_value,
        "",
        "The topic for records that a share group gives up.",
    ),
    _bool(
        "errors.deadletterqueue.copy.record.enable",
        "false",
        "",
        "If true, that topic gets a copy of each record, not only a note about it.",
    ),
)
GROUP_CONFIGS = {row.name: row for row in _ROWS}


class Bounds(NamedTuple):
    """The broker properties that bound a group config."""

    low: str
    """Empty if there is only an upper bound."""
    high: str


def _bounds(name: str) -> Bounds:
    kind, _, rest = name.partition(".")
    return Bounds(f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}")


BOUNDS = {
    name: _bounds(name)
    for name in (
        "consumer.heartbeat.interval.ms",
        "consumer.session.timeout.ms",
        "consumer.assignment.interval.ms",
        "share.heartbeat.interval.ms",
        "share.session.timeout.ms",
        "share.record.lock.duration.ms",
        "share.delivery.count.limit",
        "share.partition.max.record.locks",
        "share.assignment.interval.ms",
        "streams.heartbeat.interval.ms",
        "streams.session.timeout.ms",
    )
} | {
    "streams.num.standby.replicas": Bounds("", "group.streams.max.standby.replicas"),
    "streams.assignment.interval.ms": _bounds("streams.assignment.interval.ms"),
}
"""The bounds of group configs, by name, in the order in which Kafka checks them."""
