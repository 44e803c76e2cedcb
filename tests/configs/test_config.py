"""The configuration: Java's properties syntax, Kafka's names, and the messages for mistakes."""

import time
from dataclasses import FrozenInstanceError

import pytest

from kshim.configs.brokers import BROKER_CONFIGS
from kshim.configs.config import PROPERTIES, Config
from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import ListenerConfig, SecurityProtocol
from kshim.configs.properties_file import parse_properties
from kshim.configs.reading import ConfigError, new_config

# As Apache Kafka ships it, comments left out.
SERVER_PROPERTIES = """
process.roles=broker,controller
node.id=7
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
log.dirs=/var/lib/kraft-combined-logs
num.partitions=4
log.retention.hours=168
"""


def problems(**properties: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        new_config({name.replace("_", "."): value for name, value in properties.items()})
    return caught.value.problems


def test_defaults() -> None:
    config, warnings = new_config({})
    assert config == Config()
    assert warnings == []
    assert config.listener_configs == (
        ListenerConfig("PLAINTEXT", SecurityProtocol.PLAINTEXT, Endpoint("127.0.0.1", 9092)),
    )
    assert config.log_dirs == "./kshim-data"
    assert config.group_initial_rebalance_delay_ms == 0


def test_180_configs_of_consumer_groups() -> None:
    config, _ = new_config({})
    timeouts = config.group_consumer_session_timeout_ms, config.group_consumer_heartbeat_interval_ms
    assert timeouts == (45_000, 5_000)
    bounds = [
        *(config.group_consumer_min_session_timeout_ms, config.group_consumer_max_session_timeout_ms),
        *(config.group_consumer_min_heartbeat_interval_ms, config.group_consumer_max_heartbeat_interval_ms),
        *(config.group_consumer_min_assignment_interval_ms, config.group_consumer_max_assignment_interval_ms),
    ]
    assert bounds == [45_000, 60_000, 5_000, 15_000, 0, 15_000]
    assert (config.group_consumer_max_size, config.group_consumer_assignors) == (2**31 - 1, "uniform,range")
    assert config.group_consumer_migration_policy == "bidirectional"
    package = "org.apache.kafka.coordinator.group.assignor"
    config, _ = new_config({"group.consumer.assignors": f"{package}.RangeAssignor, uniform"})
    assert config.group_consumer_assignors == "range,uniform"


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"session_timeout_ms": "44999"}, "session.timeout.ms=44999: expected at least "),
        ({"session_timeout_ms": "60001"}, "session.timeout.ms=60001: expected at least "),
        ({"heartbeat_interval_ms": "4999"}, "heartbeat.interval.ms=4999: expected at least "),
        ({"heartbeat_interval_ms": "15001"}, "heartbeat.interval.ms=15001: expected at least "),
        ({"assignment_interval_ms": "15001"}, "assignment.interval.ms=15001: expected at least "),
        ({"min_assignment_interval_ms": "1"}, "assignment.interval.ms=0: expected at least "),
        (
            {"max_heartbeat_interval_ms": "45000", "heartbeat_interval_ms": "45000"},
            "session.timeout.ms=45000: ",
        ),
        ({"max_size": "0"}, "max.size=0: expected "),
        ({"assignors": ""}, "assignors=: expected uniform, range, or both"),
        ({"assignors": "range,range"}, "assignors=range,range: expected uniform"),
        ({"assignors": "no.such.Class"}, "assignors=no.such.Class: expected uniform"),
        ({"migration_policy": "x"}, "migration.policy=x: expected "),
        ({"regex_refresh_interval_ms": "9999"}, "regex.refresh.interval.ms=9999: expected "),
    ],
)
def test_180_wrong_configs_of_consumer_groups(properties: dict[str, str], problem: str) -> None:
    (found,) = problems(**{f"group_consumer_{name}": value for name, value in properties.items()})
    assert found.startswith(f"group.consumer.{problem}")


def test_kafkas_own_file() -> None:
    config, warnings = new_config(parse_properties(SERVER_PROPERTIES))
    assert (config.node_id, config.num_partitions, config.log_retention_hours) == (7, 4, 168)
    assert config.log_dirs == "/var/lib/kraft-combined-logs"
    plain, here, told = SecurityProtocol.PLAINTEXT, Endpoint("", 9092), Endpoint("localhost", 9092)
    assert config.listener_configs == (ListenerConfig("PLAINTEXT", plain, here, told),)
    assert warnings == ["num.network.threads has no effect here"]
    assert (config.given["log.retention.hours"], config.given["num.network.threads"]) == ("168", "3")


def test_the_config_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Config().num_partitions = 2


@pytest.mark.parametrize("property_", PROPERTIES.values(), ids=list(PROPERTIES))
def test_every_default_is_a_value_that_may_be_set(property_) -> None:
    if property_.default:
        config, _ = new_config({property_.name: property_.default})
        assert config == Config()
    assert property_.doc.endswith(".")


def test_a_default_of_kafka_that_differs_is_told() -> None:
    for name in PROPERTIES.keys() & BROKER_CONFIGS.keys():
        kafkas = BROKER_CONFIGS[name].default or ""
        if name not in ("node.id", "log.dirs"):  # one has no default, the other has that of log.dir
            same = "" if PROPERTIES[name].default == kafkas else kafkas
            assert PROPERTIES[name].kafka_default in (kafkas, same)


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1", {"a": "1"}),
        ("a:1\nb 2\r\nc\t=\t3\rd", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("# a=1\n ! b=2\n\n  c=3", {"c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=one,\\\n    two", {"a": "one,two"}),
        ("a=ends in a backslash\\\\\nb=2", {"a": "ends in a backslash\\", "b": "2"}),
        ("a=1 # no comment ", {"a": "1 # no comment "}),
        ("a==1", {"a": "=1"}),
        (r"a\=b\:c\ d=\t\u00e9\q", {"a=b:c d": "\té" + "q"}),
        ("a=x\\", {"a": "x"}),
        (r"a=\ud83d\ude00\ud800", {"a": "\N{GRINNING FACE}\N{REPLACEMENT CHARACTER}"}),
    ],
)
def test_properties_syntax(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"num_partitions": "x"}, "num.partitions=x: expected an integer of at least 1"),
        ({"num_partitions": "0"}, "num.partitions=0: expected an integer of at least 1"),
        ({"num_partitions": "1_0"}, "num.partitions=1_0: expected an integer"),
        (
            {"num_partitions": "2147483648"},
            "num.partitions=2147483648: expected an integer of at least 1, at most 21",
        ),
        (
            {"log_cleaner_min_cleanable_ratio": "1.5"},
            "log.cleaner.min.cleanable.ratio=1.5: expected a number",
        ),
        ({"log_retention_ms": "0"}, "log.retention.ms=0: expected -1, or an integer of at least 1"),
        ({"log_retention_hours": "-2"}, "log.retention.hours=-2: expected an integer of at least -1"),
        ({"compression_gzip_level": "0"}, "compression.gzip.level=0: expected -1, or an integer from 1 to 9"),
        ({"auto_create_topics_enable": "yes"}, "auto.create.topics.enable=yes: expected true or false"),
        (
            {"log_message_timestamp_type": "x"},
            "log.message.timestamp.type=x: expected CreateTime or LogAppendTime",
        ),
        ({"listeners": "9092"}, "listeners=9092: expected HOST:PORT, as in 127.0.0.1:9092 or [::1]:9092"),
        (
            {"listeners": "SSL://:9092"},
            "ssl.keystore.location: expected it, or",
        ),
        (
            {"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"},
            "listeners=PLAINTEXT://:1,PLAINTEXT://:2: expected each name once, ",
        ),
        (
            {"listeners": ":1", "advertised_listeners": "A://:2"},
            "advertised.listeners=A://:2: expected",
        ),
        ({"listeners": ""}, "listeners=: expected"),
        ({"log_dirs": "/a,/b"}, "log.dirs=/a,/b: expected one directory, or :memory:"),
        ({"num_partition": "3"}, "num.partition: no such property (did you mean num.partitions?); "),
        ({"brokerid": "3"}, "brokerid: no such property (did you mean broker.id?); "),
        (
            {"group_min_session_timeout_ms": "5", "group_max_session_timeout_ms": "4"},
            "group.min.session.timeout.ms=5: expected at most group.max.session.timeout.ms, which is 4",
        ),
        (
            {
                "upstream_bootstrap_servers": "k:1",
                "upstream_groups_lease_ms": "600",
                "upstream_groups_session_timeout_ms": "1199",
            },
            "upstream.groups.lease.ms=600: expected at most half of upstream.groups.session.timeout",
        ),
        ({"foo": "1"}, "foo: no such property; `kshim config` lists them all"),
        (
            {"sasl_enabled_mechanisms": "PLAIN, KERBEROS"},
            "sasl.enabled.mechanisms=PLAIN, KERBEROS: no mechanism KERBEROS; expected some of PLAIN",
        ),
        (
            {"listener.name.x.sasl.enabled.mechanisms": "KERBEROS"},
            "listener.name.x.sasl.enabled.mechanisms=KERBEROS: no mechanism KERBEROS; expected some of PLAIN",
        ),
        ({"upstream_groups_topic": "a b"}, "upstream.groups.topic=a b: expected the name of a topic"),
        ({"upstream_groups_topic": ".."}, "upstream.groups.topic=..: expected the name of a topic"),
        ({"upstream_groups_group_id": ""}, "upstream.groups.group.id=: expected a group id"),
        (
            {"upstream_groups_topic_replication_factor": "0"},
            "upstream.groups.topic.replication.factor=0: expected -1, or an integer of at least 1",
        ),
        (
            {"upstream_offsets_mirror_enable": "yes"},
            "upstream.offsets.mirror.enable=yes: expected true or",
        ),
    ],
)
def test_what_is_wrong_is_told_in_one_line(properties: dict[str, str], problem: str) -> None:
    (told,) = problems(**properties)
    assert told.startswith(problem)
    assert "\n" not in told


def test_a_value_or_a_name_as_long_as_a_file_takes_no_time() -> None:
    digits = "0" * 60_000 + "x"
    started = time.thread_time()
    with pytest.raises(ConfigError, match="expected a number from 0 to 1"):
        new_config({"log.cleaner.min.cleanable.ratio": digits})
    with pytest.raises(ConfigError, match="no such property"):
        new_config({"num.partition" * 5_000: "3"})
    assert time.thread_time() - started < 2


def test_kafka_s_default_mechanism_is_accepted_where_no_listener_has_sasl() -> None:
    assert new_config({"sasl.enabled.mechanisms": "GSSAPI"})[1] == []


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert len(problems(num_partitions="x", nonsense="1", log_dirs="")) == 3


@pytest.mark.parametrize("text", ["true", "TRUE", " True "])
def test_booleans_as_in_kafka(text: str) -> None:
    assert new_config({"auto.create.topics.enable": text})[0].auto_create_topics_enable is True


def test_an_own_name_of_a_listener() -> None:
    config, _ = new_config(
        {"listeners": "OUTSIDE://[::1]:9192", "listener.security.protocol.map": "OUTSIDE:PLAINTEXT"}
    )
    (listener,) = config.listener_configs
    assert (listener.name, listener.bind) == ("OUTSIDE", Endpoint("::1", 9192))


def test_an_option_wins_over_a_name_and_a_name_over_its_alias() -> None:
    properties = {"--data-dir": "option", "log.dirs": "name", "log.dir": "alias", "broker.id": "3"}
    config, _ = new_config(properties)
    assert (config.log_dirs, config.node_id) == ("option", 3)
    del properties["--data-dir"]
    assert new_config(properties)[0].log_dirs == "name"


def test_a_wrong_option_is_called_by_its_name() -> None:
    with pytest.raises(ConfigError, match=r"^--listen=x: expected HOST:PORT"):
        new_config({"--listen": "x"})


@pytest.mark.parametrize("name", ["num.io.threads", "ssl.provider", "listener.name.outside.sasl.login.class"])
def test_what_only_kafka_has_is_warned_of(name: str) -> None:
    config, warnings = new_config({name: "anything"})
    assert config == Config()
    assert warnings == [f"{name} has no effect here"]


def test_a_property_that_one_listener_may_have_of_its_own() -> None:
    name = "listener.name.internal.max.connection.creation.rate"
    config, warnings = new_config({name: "5"})
    assert (config.given[name], warnings) == ("5", [])
    with pytest.raises(ConfigError) as caught:
        new_config({name: "many"})
    assert caught.value.problems == (f"{name}=many: expected an integer of at least 0, at most 2147483647",)
