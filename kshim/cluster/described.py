"""A config as DescribeConfigs and CreateTopics answer it: value, where it comes from, its synonyms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from kshim.cluster.topic_configs import TOPIC_CONFIGS, ConfigType, TopicConfig, broker_default
from kshim.config import PROPERTIES, Config, property_text


class ConfigSource(IntEnum):
    """Where a value comes from (KIP-226)."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """synonyms: (name, value, source), the one in force first."""

    name: str
    value: str
    source: ConfigSource
    type: ConfigType
    synonyms: tuple[tuple[str, str, ConfigSource], ...]
    doc: str


def described_configs(configs: Mapping[str, str], config: Config) -> Iterator[DescribedConfig]:
    """Of a topic that overrides `configs`: those, and all that have an effect on this broker."""
    for row in TOPIC_CONFIGS.values():
        if row.effect or row.name in configs:
            yield _described(row, configs.get(row.name), config)


def _described(row: TopicConfig, override: str | None, config: Config) -> DescribedConfig:
    synonyms = list(_broker_synonyms(row, config))
    if override is not None:
        synonyms.insert(0, (row.name, override, ConfigSource.TOPIC))
    value, source = synonyms[0][1:] if synonyms else (row.default, ConfigSource.DEFAULT)
    return DescribedConfig(row.name, value, source, row.type, tuple(synonyms), row.doc)


def _broker_synonyms(row: TopicConfig, config: Config) -> Iterator[tuple[str, str, ConfigSource]]:
    """The broker's property for new topics, and its default where it was set to something else."""
    if not row.synonym:
        return
    value = broker_default(row, config)
    if value != row.default:
        yield row.synonym, value, ConfigSource.STATIC_BROKER
    yield row.synonym, row.default, ConfigSource.DEFAULT


def described_properties(config: Config) -> Iterator[DescribedConfig]:
    """Of the broker: the properties that have an effect; what is not its default was set by the user."""
    for prop in PROPERTIES.values():
        value = getattr(config, prop.name.replace(".", "_"))
        text = property_text(value)
        synonyms = [(prop.name, prop.default, ConfigSource.DEFAULT)]
        if text != prop.default:
            synonyms.insert(0, (prop.name, text, ConfigSource.STATIC_BROKER))
        source = synonyms[0][2]
        yield DescribedConfig(prop.name, text, source, _property_type(value), tuple(synonyms), prop.doc)


def _property_type(value: object) -> ConfigType:
    if isinstance(value, bool):
        return ConfigType.BOOLEAN
    return ConfigType.INT if isinstance(value, int) else ConfigType.STRING
