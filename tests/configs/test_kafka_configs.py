"""The two tables of Kafka's configs, and how a value is parsed, checked and printed."""

from __future__ import annotations

import pytest

from kshim.configs.brokers import BROKER_CONFIGS, DYNAMIC_CONFIGS, SYNONYMS, is_kafka_property
from kshim.configs.config import PROPERTIES
from kshim.configs.definition import ConfigType, Definition
from kshim.configs.groups import BOUNDS, GROUP_CONFIGS
from kshim.configs.java import LONG_MAX, duration_ns
from kshim.configs.topics import TOPIC_CONFIGS

ALL = [*TOPIC_CONFIGS.values(), *BROKER_CONFIGS.values(), *GROUP_CONFIGS.values()]


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_every_default_is_legal_and_spelled_as_kafka_spells_it(row: Definition) -> None:
    if row.default is not None:
        assert row.fault(row.default) == ""
        assert row.canonical(row.default) == row.default


def test_a_topic_config_has_the_type_of_the_property_that_gives_its_default() -> None:
    for row in TOPIC_CONFIGS.values():
        for name in row.synonyms[:1]:
            assert (BROKER_CONFIGS[name].type, name in DYNAMIC_CONFIGS) == (row.type, True)


def test_synonyms_are_known() -> None:
    assert {name for names in SYNONYMS.values() for name in names} <= set(BROKER_CONFIGS)
    assert all(set(row.synonyms) <= set(BROKER_CONFIGS) for row in TOPIC_CONFIGS.values())


def test_what_has_an_effect_on_topics_can_be_configured_for_the_broker() -> None:
    for row in TOPIC_CONFIGS.values():
        assert not row.effect or row.synonyms[0] in PROPERTIES, row.name


def test_a_group_config_has_the_type_and_default_of_its_synonym_and_bounds_that_hold_for_it() -> None:
    for row in GROUP_CONFIGS.values():
        of_broker = BROKER_CONFIGS.get(row.synonym)
        if of_broker is not None and row.name != "streams.assignor.name":
            assert (of_broker.type, of_broker.default) == (row.type, row.default)
        if row.name in BOUNDS:
            low, high = BOUNDS[row.name].low, BOUNDS[row.name].high
            assert row.default is not None
            assert not low or int(BROKER_CONFIGS[low].default or "") <= int(row.default)
            assert int(row.default) <= int(BROKER_CONFIGS[high].default or "")
        assert not row.effect or row.synonym in PROPERTIES


S = 10**9


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("PT1H", 3_600 * S),
        ("p1dt2h", 26 * 3_600 * S),
        ("P1DT1H1M1.5S", 90_061 * S + S // 2),
        ("PT1,5S", S + S // 2),
        ("PT1.S", S),
        ("-PT-1H", 3_600 * S),
        ("PT-1H61M", 60 * S),
        ("PT-0.5S", -S // 2),
        ("-PT0S", 0),
        ("PT9223372036854775807S", LONG_MAX * S),
        ("P106751991167300DT15H30M7S", LONG_MAX * S),
    ],
)
def test_durations(text: str, ns: int) -> None:
    assert duration_ns(text) == ns


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "P", "PT", "P1DT", "P1W", "P1Y", "PT.5S", "PT1.1234567890S", "PT١H", "PT1M1H", " PT1H"),
        *("PT1H ", "PT9223372036854775808S", "P106751991167301D", "P106751991167300DT15H30M8S"),
        "P9223372036854775807D",
    ],
)
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        duration_ns(text)


@pytest.mark.parametrize("name", ["num.io.threads", "ssl.anything", "listener.name.a.b"])
def test_kafka_s_names(name: str) -> None:
    assert is_kafka_property(name)
    assert not is_kafka_property(f"x{name}")


@pytest.mark.parametrize(
    ("type_", "text", "canonical"),
    [
        (ConfigType.BOOLEAN, " TRUE ", "true"),
        (ConfigType.INT, "+5", "5"),
        (ConfigType.LONG, "-9223372036854775808", "-9223372036854775808"),
        (ConfigType.DOUBLE, "1", "1.0"),
        (ConfigType.DOUBLE, "0", "0.0"),
        (ConfigType.DOUBLE, ".5", "0.5"),
        (ConfigType.DOUBLE, "1e-4", "1.0E-4"),
        (ConfigType.DOUBLE, "-1.5e-05", "-1.5E-5"),
        (ConfigType.DOUBLE, "123456789.125", "1.23456789125E8"),
        (ConfigType.DOUBLE, "1.7976931348623157E308", "1.7976931348623157E308"),
        (ConfigType.DOUBLE, "4.9e-324", "4.9E-324"),
        (ConfigType.DOUBLE, "+NaN", "NaN"),
        (ConfigType.DOUBLE, "-Infinity", "-Infinity"),
        (ConfigType.DOUBLE, "-1e400", "-Infinity"),
        (ConfigType.DOUBLE, "1f", "1.0"),
        (ConfigType.DOUBLE, "0.1e1D", "1.0"),
        (ConfigType.DOUBLE, "0x1.p-1", "0.5"),
        (ConfigType.DOUBLE, "-0X.8P+0f", "-0.5"),
        (ConfigType.DOUBLE, f"0x1p-{'9' * 40}", "0.0"),
        (ConfigType.DOUBLE, f"-0x1p{'9' * 40}", "-Infinity"),
        (ConfigType.INT, "\x00\t7\x1f ", "7"),
        (ConfigType.INT, "0" * 5000 + "7", "7"),
        (ConfigType.LONG, "-٥๕５", "-555"),
        (ConfigType.BOOLEAN, "falſe", "false"),
        (ConfigType.LIST, "", ""),
        (ConfigType.LIST, " a , b", "a,b"),
        (ConfigType.LIST, "b,a, b ,\ta\n", "b,a"),
        (ConfigType.LIST, "a\x00,a\xa0", "a\x00,a\xa0"),
        (ConfigType.STRING, " a b ", "a b"),
    ],
)
def test_values_are_spelled_as_java_spells_them(type_: ConfigType, text: str, canonical: str) -> None:
    assert Definition(name="x", type=type_, default=None).canonical(text) == canonical


def test_the_fault_in_a_number_out_of_its_range() -> None:
    ratio = TOPIC_CONFIGS["min.cleanable.dirty.ratio"]
    assert ratio.fault("NaN") == ""
    assert ratio.fault("-0x1p9999").startswith("Invalid value -Infinity for configuration min.cleanable")


@pytest.mark.parametrize("text", ["*", "*,", "0:1,,1:1", ",", "", "0:1,0:1"])
def test_empty_items_are_no_throttled_replicas(text: str) -> None:
    row = TOPIC_CONFIGS["leader.replication.throttled.replicas"]
    assert (row.fault(text), row.canonical(text)) == ("", text)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.SHORT, "32768"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.INT, "1_0"),
        (ConfigType.INT, ""),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.LONG, "9" * 1000),
        (ConfigType.INT, "\xa07"),
        (ConfigType.INT, "\U0001d7d3"),
        (ConfigType.INT, "+"),
        (ConfigType.BOOLEAN, "true\u2003"),
        (ConfigType.DOUBLE, "1,5"),
        (ConfigType.DOUBLE, "nan"),
        (ConfigType.DOUBLE, "NaNf"),
        (ConfigType.DOUBLE, "0.5L"),
        (ConfigType.DOUBLE, "1_0"),
        (ConfigType.DOUBLE, "."),
        (ConfigType.DOUBLE, "0x1"),
        (ConfigType.DOUBLE, "0x.p1"),
        (ConfigType.DOUBLE, "٠.٥"),
        (ConfigType.DOUBLE, "1" * 100_000 + "x"),
    ],
)
def test_what_is_of_another_type(type_: ConfigType, text: str) -> None:
    fault = Definition(name="x", type=type_, default=None).fault(text)
    assert fault.startswith(f"Invalid value {text} for configuration x: ")
