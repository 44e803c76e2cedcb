"""Configs as DescribeConfigs and CreateTopics answer them: value, source and synonyms."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kshim.cluster.broker_configs import BrokerConfigs, ConfigSource, Setting, listener_text, topic_setting
from kshim.cluster.cordoned import DOC as CORDONED_DOC
from kshim.cluster.cordoned import NAME as CORDONED
from kshim.configs.brokers import BROKER_CONFIGS, DYNAMIC_CONFIGS, SYNONYMS, BrokerConfig
from kshim.configs.config import PROPERTIES
from kshim.configs.definition import ConfigType, Definition
from kshim.configs.groups import GROUP_CONFIGS
from kshim.configs.topics import TOPIC_CONFIGS
from kshim.configs.values import Secret

_OF_LISTENER = re.compile(r"listener\.name\.[^.]*\.")
_NO_EFFECT = "A property of Apache Kafka. It has no effect in kshim."
_WITH_EFFECT = {CORDONED: CORDONED_DOC}
"""The documentation of Kafka's properties that have an effect only when they are set at run time."""
_WITHOUT_DEFAULT = ("node.id",)
"""Apache Kafka does not start until these are set."""
_OURS = {bool: ConfigType.BOOLEAN, int: ConfigType.INT, float: ConfigType.DOUBLE, Secret: ConfigType.PASSWORD}


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """One config of a DescribeConfigs response."""

    name: str
    value: str | None
    """None if it is not set and has no default."""
    source: ConfigSource
    type: ConfigType
    synonyms: tuple[Setting, ...]
    """Settings from the strongest to the weakest; the first is in force."""
    doc: str | None
    """Only clients that ask for documentation get it, except for an empty text, which every client gets."""
    read_only: bool = False
    is_sensitive: bool = False
    """True if its value must not be shown."""


def described_topic(overrides: Mapping[str, str], broker: BrokerConfigs) -> Iterator[DescribedConfig]:
    """All configs of a topic with these overrides."""
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
    """The configs of a topic as CreateTopics answers them, sorted by name."""
    for name in sorted(TOPIC_CONFIGS):
        if name in overrides or not TOPIC_CONFIGS[name].internal:
            yield topic_setting(name, overrides, broker)


def described_group(overrides: Mapping[str, str], broker: BrokerConfigs) -> Iterator[DescribedConfig]:
    """All configs of a group with these overrides."""
    for name, row in GROUP_CONFIGS.items():
        if row.internal and name not in overrides:
            continue
        assert row.default is not None
        synonyms = _synonyms(row.synonym, broker) if row.synonym else ()
        synonyms = synonyms or (Setting(row.synonym or name, row.default, ConfigSource.DEFAULT),)
        if name in overrides:
            text = overrides[name] if row.internal else row.canonical(overrides[name])
            synonyms = (Setting(name, text, ConfigSource.GROUP), *synonyms)
        yield DescribedConfig(
            name, synonyms[0].text, synonyms[0].source, row.type, synonyms, row.documentation
        )


def described_broker(broker: BrokerConfigs) -> Iterator[DescribedConfig]:
    """All properties of one broker, and all other names that were set on it."""
    others = (broker.static, broker.dynamic, broker.dynamic_default)
    for name in dict.fromkeys((*BROKER_CONFIGS, *PROPERTIES, *itertools.chain(*others))):
        yield _described_property(name, _synonyms(name, broker))


def described_defaults(broker: BrokerConfigs) -> Iterator[DescribedConfig]:
    """The properties that were set at run time for all brokers."""
    for name, text in broker.dynamic_default.items():
        yield _described_property(name, (Setting(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER),))


def described_loggers(levels: Mapping[str, str]) -> Iterator[DescribedConfig]:
    """The level of each logger of a broker."""
    for name, level in levels.items():
        yield DescribedConfig(name, level, ConfigSource.DYNAMIC_BROKER_LOGGER, ConfigType.UNKNOWN, (), "")


def _described_property(name: str, synonyms: tuple[Setting, ...]) -> DescribedConfig:
    row, prop = _row(name), PROPERTIES.get(name)
    type_ = row.type if row else _our_type(name)
    sensitive = type_ in (ConfigType.PASSWORD, ConfigType.UNKNOWN)  # an unknown property may be secret
    own = next((setting.text for setting in synonyms if setting.name == name), None)
    if own is not None and row is not None:
        own = _canonical(row, own)
    return DescribedConfig(
        name=name,
        value=own,
        source=_source(synonyms),
        type=type_,
        synonyms=synonyms,
        doc=prop.doc if prop else _WITH_EFFECT.get(name, _NO_EFFECT) if row else None,
        read_only=name not in DYNAMIC_CONFIGS,
        is_sensitive=sensitive,
    )


def _row(name: str) -> BrokerConfig | None:
    """The row of Kafka's table for a property. Prefixes for a listener and for its mechanism are removed."""
    if not (found := _OF_LISTENER.match(name)):
        return BROKER_CONFIGS.get(name)
    of_listener = name[found.end() :]
    return BROKER_CONFIGS.get(of_listener) or BROKER_CONFIGS.get(of_listener.partition(".")[2])


def _synonyms(name: str, broker: BrokerConfigs) -> tuple[Setting, ...]:
    """The settings of `name` and its synonyms, from the strongest to the default.

    Starts with the first setting under `name` itself.
    """
    base = row.name if (row := _row(name)) else name
    names = SYNONYMS.get(base, (base,))
    if base != name:
        names = (name, *names)
    defaults = ((other, _default(other)) for other in names)
    found = [
        *broker.settings(names),
        *(Setting(other, text, ConfigSource.DEFAULT) for other, text in defaults if text is not None),
    ]
    return tuple(itertools.dropwhile(lambda setting: setting.name != name, found))


def _default(name: str) -> str | None:
    if name in _WITHOUT_DEFAULT:
        return None
    kafkas = BROKER_CONFIGS[name].default if name in BROKER_CONFIGS else None
    if name not in PROPERTIES:
        return kafkas
    own = listener_text(name, PROPERTIES[name].default)
    return own if own or kafkas == "" else None


def _source(synonyms: tuple[Setting, ...]) -> ConfigSource:
    return synonyms[0].source if synonyms else ConfigSource.DEFAULT


def _our_type(name: str) -> ConfigType:
    """The type of a property outside Kafka's table: one that is only set at run time, or kshim's own."""
    if name in DYNAMIC_CONFIGS:
        return DYNAMIC_CONFIGS[name].type
    if name not in PROPERTIES:
        return ConfigType.UNKNOWN
    return _OURS.get(type(PROPERTIES[name].parse(PROPERTIES[name].default)), ConfigType.STRING)


def _canonical(row: Definition, text: str) -> str:
    """The text as Kafka spells it; an illegal text is returned as it is."""
    return text if row.fault(text) else row.canonical(text)
