"""The topic configs of Apache Kafka 4.2: name, type, default, legal values, meaning. One row each.

All of them are accepted and checked when a topic is made, because people bring the topics they have. `effect`
marks those that change what this broker does; DescribeConfigs lists these, and whatever else a topic was
given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from kshim.storage.interfaces import Compaction

if TYPE_CHECKING:
    from kshim.config import Config

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class ConfigType(IntEnum):
    """The types of DescribeConfigs (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One row. `check(name, value)` says what is wrong with a parsed value, "" if nothing.

    synonym: the broker property that Kafka takes the default from, "" if none. effect: it changes what this
    broker does.
    """

    name: str
    type: ConfigType
    default: str
    check: Callable[[str, Any], str]
    doc: str
    synonym: str = ""
    effect: bool = False


def _invalid(name: str, value: Any, fault: str) -> str:
    return f"Invalid value {value} for configuration {name}: {fault}"


def _any(name: str, value: Any) -> str:
    return ""


def _between(low: float, high: float | None = None) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if value < low:
            return _invalid(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            return _invalid(name, value, f"Value must be no more than {high}")
        return ""

    return check


def _one_of(*choices: str) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        values = value if isinstance(value, list) else [value]
        if isinstance(value, list) and "" in value:
            return f"Configuration '{name}' values must not be empty."
        wrong = next((v for v in values if v not in choices), None)
        return "" if wrong is None else _invalid(name, wrong, f"String must be one of: {', '.join(choices)}")

    return check


def _gzip_level(name: str, level: Any) -> str:
    if level == -1 or 1 <= level <= 9:
        return ""
    return _invalid(name, level, "Value must be between 1 and 9 or equal to -1")


def _throttled_replicas(name: str, replicas: Any) -> str:
    if replicas == ["*"] or all(re.fullmatch(r"[0-9]+:[0-9]+", replica) for replica in replicas):
        return ""
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    fault = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
    return _invalid(name, f"[{', '.join(replicas)}]", fault)


def _int(name: str, default: int, low: int, doc: str, synonym: str = "", **more: Any) -> TopicConfig:
    return TopicConfig(name, ConfigType.INT, str(default), _between(low), doc, synonym, **more)


def _long(name: str, default: int, low: int, doc: str, synonym: str = "", **more: Any) -> TopicConfig:
    return TopicConfig(name, ConfigType.LONG, str(default), _between(low), doc, synonym, **more)


def _bool(name: str, doc: str, synonym: str = "") -> TopicConfig:
    return TopicConfig(name, ConfigType.BOOLEAN, "false", _any, doc, synonym)


def _throttled(name: str) -> TopicConfig:
    doc = "Replicas whose replication is throttled: * or PARTITION:BROKER,..."
    return TopicConfig(name, ConfigType.LIST, "", _throttled_replicas, doc)


_ROWS = (
    TopicConfig(
        "cleanup.policy",
        ConfigType.LIST,
        "delete",
        _one_of("compact", "delete"),
        "What becomes of old records: delete them, compact them to the latest of each key, or both.",
        "log.cleanup.policy",
        effect=True,
    ),
    TopicConfig(
        "compression.type",
        ConfigType.STRING,
        "producer",
        _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "How record batches are compressed on disk; producer keeps them as they came.",
        "compression.type",
    ),
    TopicConfig(
        "compression.gzip.level",
        ConfigType.INT,
        "-1",
        _gzip_level,
        "Level of gzip, if compression.type is gzip.",
        "compression.gzip.level",
    ),
    TopicConfig(
        "compression.lz4.level",
        ConfigType.INT,
        "9",
        _between(1, 17),
        "Level of lz4, if compression.type is lz4.",
        "compression.lz4.level",
    ),
    TopicConfig(
        "compression.zstd.level",
        ConfigType.INT,
        "3",
        _between(-131072, 22),
        "Level of zstd, if compression.type is zstd.",
        "compression.zstd.level",
    ),
    _long(
        "delete.retention.ms",
        86400000,
        0,
        "How long a compacted topic keeps a tombstone.",
        "log.cleaner.delete.retention.ms",
        effect=True,
    ),
    _long(
        "file.delete.delay.ms",
        60000,
        0,
        "How long a file stays after its deletion.",
        "log.segment.delete.delay.ms",
    ),
    _long(
        "flush.messages", LONG_MAX, 1, "Records between two flushes to disk.", "log.flush.interval.messages"
    ),
    _long("flush.ms", LONG_MAX, 0, "Time between two flushes to disk.", "log.flush.interval.ms"),
    _throttled("follower.replication.throttled.replicas"),
    _int(
        "index.interval.bytes",
        4096,
        0,
        "Bytes between two entries of the offset index.",
        "log.index.interval.bytes",
    ),
    _throttled("leader.replication.throttled.replicas"),
    _long(
        "local.retention.bytes",
        -2,
        -2,
        "Bytes kept on the broker's own disk, with tiered storage.",
        "log.local.retention.bytes",
    ),
    _long(
        "local.retention.ms",
        -2,
        -2,
        "Time kept on the broker's own disk, with tiered storage.",
        "log.local.retention.ms",
    ),
    _long(
        "max.compaction.lag.ms",
        LONG_MAX,
        1,
        "The latest that a record is compacted.",
        "log.cleaner.max.compaction.lag.ms",
    ),
    _int(
        "max.message.bytes",
        1048588,
        0,
        "Largest record batch, in bytes, after compression.",
        "message.max.bytes",
        effect=True,
    ),
    _long(
        "message.timestamp.after.max.ms",
        3600000,
        0,
        "How far ahead of the broker's clock a record's timestamp may be.",
        "log.message.timestamp.after.max.ms",
        effect=True,
    ),
    _long(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        0,
        "How far behind the broker's clock a record's timestamp may be.",
        "log.message.timestamp.before.max.ms",
        effect=True,
    ),
    TopicConfig(
        "message.timestamp.type",
        ConfigType.STRING,
        "CreateTime",
        _one_of("CreateTime", "LogAppendTime"),
        "Whether records keep the producer's time (CreateTime) or get the broker's (LogAppendTime).",
        "log.message.timestamp.type",
        effect=True,
    ),
    TopicConfig(
        "min.cleanable.dirty.ratio",
        ConfigType.DOUBLE,
        "0.5",
        _between(0, 1),
        "Share of the log that may be uncompacted.",
        "log.cleaner.min.cleanable.ratio",
        effect=True,
    ),
    _long(
        "min.compaction.lag.ms",
        0,
        0,
        "The earliest that a record is compacted.",
        "log.cleaner.min.compaction.lag.ms",
    ),
    _int("min.insync.replicas", 1, 1, "In-sync replicas that acks=all asks for.", "min.insync.replicas"),
    _bool("preallocate", "Whether files are given their full size at once.", "log.preallocate"),
    _bool("remote.log.copy.disable", "Whether nothing more is copied to tiered storage."),
    _bool("remote.log.delete.on.disable", "Whether tiered records go when tiered storage is switched off."),
    _bool("remote.storage.enable", "Whether old records go to tiered storage."),
    _long(
        "retention.bytes",
        -1,
        -LONG_MAX - 1,
        "Bytes that a partition may grow to; -1 is no limit.",
        "log.retention.bytes",
    ),
    _long("retention.ms", 604800000, -1, "How long records are kept; -1 is for ever.", "log.retention.ms"),
    _int("segment.bytes", 1073741824, 1048576, "Size of one log file.", "log.segment.bytes"),
    _int("segment.index.bytes", 10485760, 4, "Size of one index file.", "log.index.size.max.bytes"),
    _long("segment.jitter.ms", 0, 0, "Spread of segment.ms.", "log.roll.jitter.ms"),
    _long("segment.ms", 604800000, 1, "Age at which a log file is closed.", "log.roll.ms"),
    _bool(
        "unclean.leader.election.enable",
        "Whether a replica that lags behind may lead.",
        "unclean.leader.election.enable",
    ),
)

TOPIC_CONFIGS: dict[str, TopicConfig] = {row.name: row for row in _ROWS}


def parse_value(row: TopicConfig, text: str) -> Any:
    """The value that `text` means. Raises ValueError, in Kafka's words."""
    text = text.strip()
    match row.type:
        case ConfigType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise ValueError("Expected value to be either true or false")
            return text.lower() == "true"
        case ConfigType.INT | ConfigType.LONG:
            limit = INT_MAX if row.type is ConfigType.INT else LONG_MAX
            if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not -limit - 1 <= int(text) <= limit:
                raise ValueError(f"Not a number of type {row.type.name}")
            return int(text)
        case ConfigType.DOUBLE:
            if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
                raise ValueError(f"Not a number of type {row.type.name}")
            return float(text)
        case ConfigType.LIST:
            return [item.strip() for item in text.split(",")] if text else []
        case _:
            return text


def fault_in_configs(configs: Mapping[str, str | None]) -> str | None:
    """What is wrong with the configs of a new topic, in Kafka's words; None if nothing."""
    nulls = sorted(name for name, text in configs.items() if text is None)
    if nulls:
        return f"Null value not supported for topic configs: {','.join(nulls)}"
    unknown = next((name for name in configs if name not in TOPIC_CONFIGS), None)
    if unknown is not None:
        return f"Unknown topic config name: {unknown}"
    values: dict[str, Any] = {}
    for name, row in TOPIC_CONFIGS.items():
        text = configs.get(name, row.default)
        assert text is not None
        try:
            values[name] = parse_value(row, text)
        except ValueError as error:
            return _invalid(name, text.strip(), str(error))
        fault = row.check(name, values[name])
        if fault:
            return fault
    return _contradiction(values)


def _contradiction(values: Mapping[str, Any]) -> str | None:
    earliest, latest = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if earliest > latest:
        return (
            f"conflict topic config setting min.compaction.lag.ms ({earliest}) > "
            f"max.compaction.lag.ms ({latest})"
        )
    if values["remote.storage.enable"]:
        return (
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote "
            "log storage."
        )
    return None


@dataclass(frozen=True, slots=True)
class LogConfig:
    """What of a topic's configs matters to its log. compaction: None if it is not compacted."""

    max_message_bytes: int
    log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    compaction: Compaction | None

    @property
    def compacted(self) -> bool:
        return self.compaction is not None


def log_config(configs: Mapping[str, str], config: Config) -> LogConfig:
    """The log config of a topic that overrides `configs`."""
    return LogConfig(
        max_message_bytes=effective("max.message.bytes", configs, config),
        log_append_time=effective("message.timestamp.type", configs, config) == "LogAppendTime",
        timestamp_before_max_ms=effective("message.timestamp.before.max.ms", configs, config),
        timestamp_after_max_ms=effective("message.timestamp.after.max.ms", configs, config),
        compaction=_compaction(configs, config),
    )


def _compaction(configs: Mapping[str, str], config: Config) -> Compaction | None:
    if "compact" not in effective("cleanup.policy", configs, config):
        return None
    return Compaction(
        delete_retention_ms=effective("delete.retention.ms", configs, config),
        min_cleanable_dirty_ratio=effective("min.cleanable.dirty.ratio", configs, config),
    )


def effective(name: str, configs: Mapping[str, str], config: Config) -> Any:
    """The value of one topic config: the topic's own, else the broker's, else Kafka's default."""
    row = TOPIC_CONFIGS[name]
    return parse_value(row, configs.get(name) or broker_default(row, config))


def broker_default(row: TopicConfig, config: Config) -> str:
    """The text of the value that a topic has which does not override it."""
    value = getattr(config, row.synonym.replace(".", "_"), None) if row.synonym else None
    return row.default if value is None else str(value)
