"""A config as DescribeConfigs and CreateTopics answer it: value, where it comes from, its synonyms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kshim.cluster.broker_configs import BrokerConfigs, ConfigSource, Setting, listener_text, topic_setting
from kshim.configs.brokers import BROKER_CONFIGS, DYNAMIC_CONFIGS, SYNONYMS
from kshim.configs.config import PROPERTIES
from kshim.configs.definition import ConfigType, Definition
from kshim.configs.topics import TOPIC_CONFIGS

_NO_EFFECT = "Apache Kafka's; it has no effect here."
_WITHOUT_DEFAULT = ("node.id",)
"""Apache Kafka does not start before somebody has set them."""
_OURS = {bool: ConfigType.BOOLEAN, int: ConfigType.INT, float: ConfigType.DOUBLE}


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """synonyms: the one in force first. value: None where it is not set. is_sensitive: not to be shown.
    doc: "" is told to everybody, any other text to those that ask for documentation."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    synonyms: tuple[Setting, ...]
    doc: str | None
    read_only: bool = False
    is_sensitive: bool = False


def described_topic(overrides: Mapping[str, str], broker: BrokerConfigs) -> Iterator[DescribedConfig]:
    """All configs of a topic that overrides some."""
    for name, row in TOPIC_CONFIGS.items():
        if row.internal and name not in overrides:
            continue
        text = topic_setting(name, overrides, broker).text
        value = text if row.internal else row.canonical(text)
        synonyms = _synonyms(row.synonyms[0], broker) if row.synonyms else ()
        if name in overrides:
            synonyms = (Setting(name, value, ConfigSource.TOPIC), *synonyms)
        yield DescribedConfig(name, value, _source(synonyms), row.type, synonyms, row.documentation)


def created_topic(overrides: Mapping[str, str], broker: BrokerConfigs) -> Iterator[Setting]:
    """What CreateTopics tells of the configs of a topic, in the order of their names."""
    for name in sorted(TOPIC_CONFIGS):
        if name in overrides or not TOPIC_CONFIGS[name].internal:
            yield topic_setting(name, overrides, broker)


def described_broker(broker: BrokerConfigs) -> Iterator[DescribedConfig]:
    """All properties of one broker; also of other names, where somebody set them."""
    others = (broker.static, broker.dynamic, broker.dynamic_default)
    for name in dict.fromkeys((*BROKER_CONFIGS, *PROPERTIES, *itertools.chain(*others))):
        yield _described_property(name, _synonyms(name, broker))


def described_defaults(broker: BrokerConfigs) -> Iterator[DescribedConfig]:
    """The properties that were set at run time for all brokers together."""
    for name, text in broker.dynamic_default.items():
        yield _described_property(name, (Setting(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER),))


def described_loggers(levels: Mapping[str, str]) -> Iterator[DescribedConfig]:
    """The level of each logger of a broker."""
    for name, level in levels.items():
        yield DescribedConfig(name, level, ConfigSource.DYNAMIC_BROKER_LOGGER, ConfigType.UNKNOWN, (), "")


def _described_property(name: str, synonyms: tuple[Setting, ...]) -> DescribedConfig:
    row, prop = BROKER_CONFIGS.get(name), PROPERTIES.get(name)
    type_ = row.type if row else _our_type(name)
    sensitive = type_ in (ConfigType.PASSWORD, ConfigType.UNKNOWN)  # what is unknown may be secret
    own = next((setting.text for setting in synonyms if setting.name == name), None)
    if own is not None and row is not None:
        own = _canonical(row, own)
    return DescribedConfig(
        name=name,
        value=own,
        source=_source(synonyms),
        type=type_,
        synonyms=synonyms,
        doc=prop.doc if prop else _NO_EFFECT if row else None,
        read_only=row is None or not row.dynamic,
        is_sensitive=sensitive,
    )


def _synonyms(name: str, broker: BrokerConfigs) -> tuple[Setting, ...]:
    """Everything that stands for property `name`, Kafka's default last; from the first of that name on."""
    names = SYNONYMS.get(name, (name,))
    defaults = ((other, _default(other)) for other in names)
    found = [
        *broker.settings(names),
        *(Setting(other, text, ConfigSource.DEFAULT) for other, text in defaults if text is not None),
    ]
    return tuple(itertools.dropwhile(lambda setting: setting.name != name, found))


def _default(name: str) -> str | None:
    if name in _WITHOUT_DEFAULT:
        return None
    if name in PROPERTIES:
        return listener_text(name, PROPERTIES[name].default) or None
    return BROKER_CONFIGS[name].default if name in BROKER_CONFIGS else None


def _source(synonyms: tuple[Setting, ...]) -> ConfigSource:
    return synonyms[0].source if synonyms else ConfigSource.DEFAULT


def _our_type(name: str) -> ConfigType:
    """Of a property that Kafka has only at run time, or not at all."""
    if name in DYNAMIC_CONFIGS:
        return DYNAMIC_CONFIGS[name].type
    if name not in PROPERTIES:
        return ConfigType.UNKNOWN
    return _OURS.get(type(PROPERTIES[name].parse(PROPERTIES[name].default)), ConfigType.STRING)


def _canonical(row: Definition, text: str) -> str:
    """As Kafka spells it; what could not be checked stays as it is."""
    return text if row.fault(text) else row.canonical(text)
