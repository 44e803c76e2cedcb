"""The configs of a topic: checks of them, and the `LogConfig` that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kshim.cluster.broker_configs import BrokerConfigs, topic_value
from kshim.configs.topics import TOPIC_CONFIGS
from kshim.storage.interfaces import Cleanup, Compaction, Retention
from schemas.records.compression import Compression


def fault_in_configs(configs: Mapping[str, str | None], broker: BrokerConfigs) -> str | None:
    """The fault in the configs of a topic, in Kafka's words; None if there is none."""
    nulls = [name for name, text in configs.items() if text is None]
    if nulls:
        return f"Null value not supported for topic configs: {','.join(sorted(nulls))}"
    texts = {name: text for name, text in configs.items() if text is not None}
    unknown = next((name for name in texts if name not in TOPIC_CONFIGS), None)
    if unknown is not None:
        return f"Unknown topic config name: {unknown}"
    for name, row in TOPIC_CONFIGS.items():
        fault = row.fault(texts[name]) if name in texts else ""
        if fault:
            return fault
    return _contradiction(texts, broker)


def _contradiction(configs: Mapping[str, str], broker: BrokerConfigs) -> str | None:
    earliest = topic_value("min.compaction.lag.ms", configs, broker)
    latest = topic_value("max.compaction.lag.ms", configs, broker)
    if earliest > latest:
        return (
            f"conflict topic config setting min.compaction.lag.ms ({earliest}) > "
            f"max.compaction.lag.ms ({latest})"
        )
    if topic_value("remote.storage.enable", configs, broker):
        return (
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote "
            "log storage."
        )
    return None


_CODECS = {  # "producer" is not among them
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The values of the topic configs that a log uses."""

    max_message_bytes: int
    log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    min_insync_replicas: int
    compression: Compression | None
    """None if batches stay as the producer compressed them."""
    compression_level: int | None
    cleanup: Cleanup

    @property
    def compacted(self) -> bool:
        return self.cleanup.compaction is not None


def log_config(configs: Mapping[str, str], broker: BrokerConfigs) -> LogConfig:
    """The log config of a topic. configs: its overrides."""

    def value(name: str) -> Any:
        return topic_value(name, configs, broker)

    codec = _CODECS.get(value("compression.type"))
    return LogConfig(
        max_message_bytes=value("max.message.bytes"),
        log_append_time=value("message.timestamp.type") == "LogAppendTime",
        timestamp_before_max_ms=value("message.timestamp.before.max.ms"),
        timestamp_after_max_ms=value("message.timestamp.after.max.ms"),
        min_insync_replicas=value("min.insync.replicas"),
        compression=codec,
        compression_level=_compression_level(codec, value),
        cleanup=Cleanup(
            compaction=_compaction(value) if "compact" in value("cleanup.policy") else None,
            retention=_retention(value) if "delete" in value("cleanup.policy") else None,
        ),
    )


def _compaction(value: Callable[[str], Any]) -> Compaction:
    return Compaction(value("delete.retention.ms"), value("min.cleanable.dirty.ratio"))


def _retention(value: Callable[[str], Any]) -> Retention:
    return Retention(value("retention.ms"), value("retention.bytes"))


def _compression_level(codec: Compression | None, value: Callable[[str], Any]) -> int | None:
    if codec not in (Compression.GZIP, Compression.LZ4, Compression.ZSTD):
        return None
    level: int = value(f"compression.{codec.name.lower()}.level")
    return None if codec is Compression.GZIP and level == -1 else level
