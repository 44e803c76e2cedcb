"""The configs of one broker, as texts by source (KIP-226).

The sources are: set at run time for this broker, set at run time for all brokers, set at the start. A
broker's configs are also the defaults of topic configs, so this module finds the values of those, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kshim.configs import java
from kshim.configs.brokers import BROKER_CONFIGS
from kshim.configs.config import PROPERTIES, Config, property_text
from kshim.configs.definition import Value
from kshim.configs.topics import TOPIC_CONFIGS

ALL_BROKERS = ""
"""The name of the resource whose configs count for all brokers."""


class ConfigSource(IntEnum):
    """The source of a value (KIP-226)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    GROUP = 8


class Setting(NamedTuple):
    """The text of one config, and its source."""

    name: str
    text: str
    source: ConfigSource


class BrokerConfigs(NamedTuple):
    """The texts of one broker, by property: `dynamic` wins over `dynamic_default`, and that over `static`."""

    dynamic: Mapping[str, str]
    dynamic_default: Mapping[str, str]
    static: Mapping[str, str]

    def settings(self, names: Sequence[str]) -> Iterator[Setting]:
        """The settings under any of `names`, from every source, the strongest first."""
        for source, texts in (
            (ConfigSource.DYNAMIC_BROKER, self.dynamic),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self.dynamic_default),
            (ConfigSource.STATIC_BROKER, self.static),
        ):
            for name in names:
                if name in texts:
                    yield Setting(name, texts[name], source)


def broker_configs(
    config: Config, node_id: int, dynamic: Mapping[str, Mapping[str, str]] | None = None
) -> BrokerConfigs:
    """The configs of broker `node_id`. dynamic: texts set at run time, by node id as text or ALL_BROKERS."""
    dynamic = dynamic or {}
    static = {**_changed(config), **_given(config), "node.id": str(node_id), "broker.id": str(node_id)}
    static = {name: listener_text(name, text) for name, text in static.items()}
    if node_id != config.node_id:
        static |= _listeners(config, node_id - config.node_id)
    return BrokerConfigs(dynamic.get(str(node_id), {}), dynamic.get(ALL_BROKERS, {}), static)


def broker_text(name: str, configs: BrokerConfigs) -> str:
    """The text of one property that has a default: the strongest setting, else the default."""
    set_texts = (setting.text for setting in configs.settings([name]))
    default = PROPERTIES[name].default if name in PROPERTIES else BROKER_CONFIGS[name].default
    assert default is not None
    return next(set_texts, default)


def parse_node_id(name: str) -> int | None:
    """Parse the name of a broker resource; None if Kafka would not read it as a number."""
    try:
        return java.integer(name, java.INT_MAX)
    except ValueError:
        return None


def listener_text(name: str, text: str) -> str:
    """Return `text`; a bare HOST:PORT of a listener property becomes PLAINTEXT://HOST:PORT, as in Kafka."""
    bare = name in ("listeners", "advertised.listeners") and text and "://" not in text
    return f"PLAINTEXT://{text}" if bare else text


def _listeners(config: Config, number: int) -> dict[str, str]:
    """The listener properties of the broker `number` places after the first."""
    found = [listener.of_broker(number) for listener in config.listener_configs]
    advertised = [f"{each.name}://{each.advertised}" for each in found if each.advertised is not None]
    listeners = {"listeners": ",".join(each.url for each in found)}
    return listeners | ({"advertised.listeners": ",".join(advertised)} if advertised else {})


def _given(config: Config) -> dict[str, str]:
    """The properties that the user set, without those that only Kafka has and whose value it would refuse."""
    return {
        name: text
        for name, text in config.given.items()
        if name in PROPERTIES or name not in BROKER_CONFIGS or not BROKER_CONFIGS[name].fault(text)
    }


def _changed(config: Config) -> dict[str, str]:
    """The properties whose value is not their default."""
    texts = {name: property_text(getattr(config, name.replace(".", "_"))) for name in PROPERTIES}
    return {name: text for name, text in texts.items() if text != PROPERTIES[name].default}


def topic_setting(name: str, overrides: Mapping[str, str], configs: BrokerConfigs) -> Setting:
    """The text of one topic config: the topic's own, else the broker's, else Kafka's default."""
    row = TOPIC_CONFIGS[name]
    if name in overrides:
        return Setting(name, overrides[name], ConfigSource.TOPIC)
    for synonym, text, source in configs.settings(row.synonyms):
        return Setting(name, row.from_synonym(synonym, text), source)
    assert row.default is not None
    return Setting(name, row.default, ConfigSource.DEFAULT)


def topic_value(name: str, overrides: Mapping[str, str], configs: BrokerConfigs) -> Value:
    """The value of one topic config."""
    return TOPIC_CONFIGS[name].parse(topic_setting(name, overrides, configs).text)
