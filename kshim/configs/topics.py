"""The topic configs of Apache Kafka 4.4, one row each.

All of them are accepted, checked and stored, because people bring the topics they have. The documentation of
a config without effect says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from kshim.configs.definition import (
    Check,
    ConfigType,
    Definition,
    any_value,
    between,
    gzip_level,
    one_of,
    throttled_replicas,
)
from kshim.configs.java import LONG_MAX

MAX_RECORD_BYTES = 2**31 - 9
"""The largest array of Java: no limit."""
_NO_EFFECT = "It has no effect in kshim."
_UNITS_MS = {"hours": 3_600_000, "minutes": 60_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig(Definition):
    """One row of the table."""

    doc: str
    synonyms: tuple[str, ...] = ()
    """The broker properties that set the default of this config, the strongest first."""
    effect: bool = False
    """True if it changes what kshim does."""

    @property
    def internal(self) -> bool:
        """True if it has no default. Kafka lists such a config only if it was set, with the text as given."""
        return self.default is None

    @property
    def documentation(self) -> str:
        return self.doc if self.effect else f"{self.doc} {_NO_EFFECT}"

    def from_synonym(self, synonym: str, text: str) -> str:
        """Convert a legal `text` of `synonym`, which may be in hours or minutes, to a text of this config."""
        if self.name == "retention.ms":
            return str(max(self._ms(synonym, text), -1))
        return str(self._ms(synonym, text)) if _unit_ms(synonym) != 1 else text

    def _ms(self, synonym: str, text: str) -> int:
        value = self.parse(text)
        assert isinstance(value, int)
        return value * _unit_ms(synonym)


def _unit_ms(synonym: str) -> int:
    return _UNITS_MS.get(synonym.rpartition(".")[2], 1)


def _row(
    name: str, type: ConfigType, default: str | None, check: Check, doc: str, *synonyms: str, **more: bool
) -> TopicConfig:
    return TopicConfig(name=name, type=type, default=default, check=check, doc=doc, synonyms=synonyms, **more)


def _int(name: str, default: int, low: int, doc: str, *synonyms: str, **more: bool) -> TopicConfig:
    return _row(name, ConfigType.INT, str(default), between(low), doc, *synonyms, **more)


def _long(name: str, default: int, low: int, doc: str, *synonyms: str, **more: bool) -> TopicConfig:
    return _row(name, ConfigType.LONG, str(default), between(low), doc, *synonyms, **more)


def _bool(name: str, doc: str, *synonyms: str) -> TopicConfig:
    return _row(name, ConfigType.BOOLEAN, "false", any_value, doc, *synonyms)


def _throttled(name: str) -> TopicConfig:
    doc = "Replicas whose replication is throttled: * or PARTITION:BROKER,..."
    return _row(name, ConfigType.LIST, "", throttled_replicas, doc, repeats=True)


_ROWS = (
    _row(
        "cleanup.policy",
        ConfigType.LIST,
        "delete",
        one_of("compact", "delete"),
        "delete: old records are removed. compact: only the latest record of each key stays. Or both.",
        "log.cleanup.policy",
        effect=True,
    ),
    _row(
        "compression.type",
        ConfigType.STRING,
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "Compression of record batches on disk. producer keeps batches as they came.",
        "compression.type",
        effect=True,
    ),
    _row(
        "compression.gzip.level",
        ConfigType.INT,
        "-1",
        gzip_level,
        "Level of gzip, if compression.type is gzip.",
        "compression.gzip.level",
        effect=True,
    ),
    _row(
        "compression.lz4.level",
        ConfigType.INT,
        "9",
        between(1, 17),
        "Level of lz4, if compression.type is lz4.",
        "compression.lz4.level",
        effect=True,
    ),
    _row(
        "compression.zstd.level",
        ConfigType.INT,
        "3",
        between(-131072, 22),
        "Level of zstd, if compression.type is zstd.",
        "compression.zstd.level",
        effect=True,
    ),
    _long(
        "delete.retention.ms",
        86400000,
        0,
        "How long a compacted topic keeps a tombstone.",
        "log.cleaner.delete.retention.ms",
        effect=True,
    ),
    _bool(
        "errors.deadletterqueue.group.enable", "If true, share groups may put records here that they give up."
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
    _long(
        "flush.ms",
        LONG_MAX,
        0,
        "Time between two flushes to disk.",
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
    ),
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
        "How long records stay on the broker's own disk, with tiered storage.",
        "log.local.retention.ms",
    ),
    _long(
        "max.compaction.lag.ms",
        LONG_MAX,
        1,
        "Longest time until a record is compacted.",
        "log.cleaner.max.compaction.lag.ms",
    ),
    _row(
        "max.decompressed.message.bytes",
        ConfigType.INT,
        str(MAX_RECORD_BYTES),
        between(1, MAX_RECORD_BYTES),
        "Largest record in a compressed batch, in bytes, after decompression.",
        "max.decompressed.message.bytes",
        effect=True,
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
    _row(
        "message.timestamp.type",
        ConfigType.STRING,
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        "CreateTime: records keep the producer's time. LogAppendTime: records get the broker's time.",
        "log.message.timestamp.type",
        effect=True,
    ),
    _row(
        "min.cleanable.dirty.ratio",
        ConfigType.DOUBLE,
        "0.5",
        between(0, 1),
        "Share of the log that may be uncompacted.",
        "log.cleaner.min.cleanable.ratio",
        effect=True,
    ),
    _long(
        "min.compaction.lag.ms",
        0,
        0,
        "Shortest time until a record is compacted.",
        "log.cleaner.min.compaction.lag.ms",
        effect=True,
    ),
    _int(
        "min.insync.replicas",
        1,
        1,
        "Number of in-sync replicas that a record with acks=all needs.",
        "min.insync.replicas",
        effect=True,
    ),
    _bool("preallocate", "If true, files get their full size at once.", "log.preallocate"),
    _long(
        "remote.copy.lag.bytes",
        -1,
        -1,
        "Bytes of newer records after which a log file is copied to tiered storage.",
        "log.remote.copy.lag.bytes",
    ),
    _long(
        "remote.copy.lag.ms",
        0,
        -1,
        "Age at which a log file is copied to tiered storage.",
        "log.remote.copy.lag.ms",
    ),
    _bool("remote.log.copy.disable", "If true, nothing more is copied to tiered storage."),
    _bool(
        "remote.log.delete.on.disable",
        "If true, records in tiered storage are deleted when it is switched off.",
    ),
    _bool("remote.storage.enable", "If true, old records move to tiered storage."),
    _long(
        "retention.bytes",
        -1,
        -LONG_MAX - 1,
        "Largest size of a partition, in bytes; -1 is no limit.",
        "log.retention.bytes",
        effect=True,
    ),
    _long(
        "retention.ms",
        604800000,
        -1,
        "How long records are kept; -1 is for ever.",
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
        effect=True,
    ),
    _row("internal.segment.bytes", ConfigType.INT, None, any_value, "Size of one log file, of any size."),
    _int("segment.bytes", 1073741824, 1048576, "Size of one log file.", "log.segment.bytes"),
    _int("segment.index.bytes", 10485760, 4, "Size of one index file.", "log.index.size.max.bytes"),
    _long("segment.jitter.ms", 0, 0, "Spread of segment.ms.", "log.roll.jitter.ms", "log.roll.jitter.hours"),
    _long("segment.ms", 604800000, 1, "Age at which a log file is closed.", "log.roll.ms", "log.roll.hours"),
    _bool(
        "unclean.leader.election.enable",
        "If true, a replica that lags behind may become leader.",
        "unclean.leader.election.enable",
    ),
)

TOPIC_CONFIGS: dict[str, TopicConfig] = {row.name: row for row in _ROWS}
