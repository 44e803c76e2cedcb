"""The configs of a topic: checks of them, and the `LogConfig` that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kshim.cluster.broker_configs import BrokerConfigs, topic_value
from kshim.configs.definition import Value
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
    values = _Values(configs, broker)
    earliest = values.number("min.compaction.lag.ms")
    latest = values.number("max.compaction.lag.ms")
    if earliest > latest:
        return (
            f"conflict topic config setting min.compaction.lag.ms ({earliest}) > "
            f"max.compaction.lag.ms ({latest})"
        )
    if values.value("remote.storage.enable"):
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


class LogConfig(NamedTuple):
    """The values of the topic configs that a log uses."""

    max_message_bytes: int
    max_record_bytes: int
    """Most bytes of a record in a compressed batch (max.decompressed.message.bytes)."""
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


class _Values(NamedTuple):
    """The values of a topic's configs."""

    overrides: Mapping[str, str]
    broker: BrokerConfigs

    def value(self, name: str) -> Value:
        return topic_value(name, self.overrides, self.broker)

    def number(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int)
        return value

    def ratio(self, name: str) -> float:
        value = self.value(name)
        assert isinstance(value, float)
        return value

    def text(self, name: str) -> str:
        value = self.value(name)
        assert isinstance(value, str)
        return value

    def items(self, name: str) -> Sequence[str]:
        value = self.value(name)
        assert isinstance(value, list)
        return value


def log_config(configs: Mapping[str, str], broker: BrokerConfigs) -> LogConfig:
    """The log config of a topic. configs: its overrides."""
    values = _Values(configs, broker)
    codec = _CODECS.get(values.text("compression.type"))
    policies = values.items("cleanup.policy")
    return LogConfig(
        max_message_bytes=values.number("max.message.bytes"),
        max_record_bytes=values.number("max.decompressed.message.bytes"),
        log_append_time=values.text("message.timestamp.type") == "LogAppendTime",
        timestamp_before_max_ms=values.number("message.timestamp.before.max.ms"),
        timestamp_after_max_ms=values.number("message.timestamp.after.max.ms"),
        min_insync_replicas=values.number("min.insync.replicas"),
        compression=codec,
        compression_level=_compression_level(codec, values),
        cleanup=Cleanup(
            compaction=_compaction(values) if "compact" in policies else None,
            retention=_retention(values) if "delete" in policies else None,
        ),
    )


def _compaction(values: _Values) -> Compaction:
    return Compaction(
        values.number("delete.retention.ms"),
        values.ratio("min.cleanable.dirty.ratio"),
        values.number("min.compaction.lag.ms"),
    )


def _retention(values: _Values) -> Retention:
    return Retention(values.number("retention.ms"), values.number("retention.bytes"))


def _compression_level(codec: Compression | None, values: _Values) -> int | None:
    if codec not in (Compression.GZIP, Compression.LZ4, Compression.ZSTD):
        return None
    level = values.number(f"compression.{codec.name.lower()}.level")
    return None if codec is Compression.GZIP and level == -1 else level
