"""After any changes of configs, the effective values equal a simple model's, and survive a restart."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from kshim.answering import Broker
from kshim.cluster.broker_configs import ConfigSource
from tests.api.configs import BROKER, DELETE, SET, TOPIC, alter, replace, value
from tests.api.harness import create, new_broker

NAMES = {"max.message.bytes": "message.max.bytes", "retention.ms": "log.retention.ms"}
DEFAULTS = {"max.message.bytes": "1048588", "retention.ms": "604800000"}
PLACES = ((TOPIC, "t"), (BROKER, "1"), (BROKER, ""))
SOURCES = (ConfigSource.TOPIC, ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER)

Place = tuple[int, str]
Model = dict[Place, dict[str, str]]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(PLACES),
        st.booleans(),
        st.dictionaries(st.sampled_from(list(NAMES)), st.integers(1, 9).map(str) | st.none(), max_size=2),
    ),
    max_size=12,
)


def _name(place: Place, config: str) -> str:
    return config if place[0] == TOPIC else NAMES[config]


def _change(broker: Broker, place: Place, is_put: bool, wanted: Mapping[str, str | None]) -> None:
    if is_put:
        texts = [(_name(place, config), text) for config, text in wanted.items() if text is not None]
        error, _ = replace(broker, *place, texts)
    else:
        operations = [
            (_name(place, config), DELETE if text is None else SET, text) for config, text in wanted.items()
        ]
        ((error, _),) = alter(broker, (*place, operations))
    assert error == 0


def _model(model: Model, place: Place, is_put: bool, wanted: Mapping[str, str | None]) -> None:
    after = {} if is_put else dict(model.get(place, {}))
    for config, text in wanted.items():
        if text is None:
            after.pop(config, None)
        else:
            after[config] = text
    model[place] = after


def _expected(model: Model, config: str) -> tuple[str, int]:
    for place, source in zip(PLACES, SOURCES, strict=True):
        if config in model.get(place, {}):
            return model[place][config], source
    return DEFAULTS[config], ConfigSource.DEFAULT


@settings(max_examples=60, deadline=None)
@given(CHANGES)
def test_what_is_in_force(changes: list[tuple[Place, bool, dict[str, str | None]]]) -> None:
    broker = new_broker(offsets_topic_num_partitions=1)
    create(broker, "t")
    model: Model = {}
    for place, is_put, wanted in changes:
        _change(broker, place, is_put, wanted)
        _model(model, place, is_put, wanted)
        cluster = broker.cluster
        config = cluster.log_config(cluster.topics["t"])
        assert config.max_message_bytes == int(_expected(model, "max.message.bytes")[0])
        assert config.cleanup.retention is not None
        assert config.cleanup.retention.retention_ms == int(_expected(model, "retention.ms")[0])
    for name in NAMES:
        assert value(broker, TOPIC, "t", name) == _expected(model, name)

    class Again:
        log, metadata = broker.log, broker.cluster._metadata

    later = new_broker(Again(), offsets_topic_num_partitions=1)
    for name in NAMES:
        assert value(later, TOPIC, "t", name) == _expected(model, name)
