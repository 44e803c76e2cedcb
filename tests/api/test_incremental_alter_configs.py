"""IncrementalAlterConfigs: what changes, and how errors are worded. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kshim.answering import Broker
from kshim.api.incremental_alter_configs import incremental_alter_configs
from kshim.cluster.broker_configs import ConfigSource
from schemas.error_code import ErrorCode
from tests.api.configs import (
    APPEND,
    BROKER,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    described,
    incremental_request,
    synonyms,
    value,
)
from tests.api.harness import HeldStore, collect, context, create, new_broker

OF_TOPIC, DYNAMIC, DYNAMIC_DEFAULT = 1, 2, 3
DEFAULT = ConfigSource.DEFAULT
DONE = [(ErrorCode.NONE, None)]


@pytest.fixture
def broker() -> Broker:
    broker = new_broker()
    create(broker, "t")
    return broker


def test_set_and_delete(broker: Broker) -> None:
    assert alter(broker, (TOPIC, "t", [("retention.ms", SET, "1000"), ("preallocate", SET, "TRUE")])) == DONE
    assert value(broker, TOPIC, "t", "retention.ms") == ("1000", OF_TOPIC)
    assert value(broker, TOPIC, "t", "preallocate") == ("true", OF_TOPIC)
    assert alter(broker, (TOPIC, "t", [("retention.ms", DELETE, None), ("flush.ms", DELETE, "1")])) == DONE
    assert value(broker, TOPIC, "t", "retention.ms") == ("604800000", DEFAULT)
    assert broker.cluster.topics["t"].configs == {"preallocate": "TRUE"}


@pytest.mark.parametrize(
    ("steps", "policy"),
    [
        ([(APPEND, "compact")], "delete,compact"),  # a list that is not set starts from its default
        ([(APPEND, "compact"), (APPEND, "compact,delete")], "delete,compact"),
        ([(SUBTRACT, "delete")], ""),
        ([(SET, "compact,delete"), (SUBTRACT, "delete")], "compact"),
        ([(SET, ""), (APPEND, "compact")], "compact"),
        ([(SUBTRACT, "compact")], "delete"),
        ([(SET, "delete,compact, delete")], "delete,compact"),
        ([(SET, "delete,delete,compact"), (SUBTRACT, "delete")], "delete,compact"),  # one of the two
        ([(SET, "delete,delete,compact"), (SUBTRACT, "delete,delete")], "compact"),
        ([(APPEND, "compact,compact,")], "delete,compact"),
        ([(APPEND, ",")], "delete"),
    ],
)
def test_a_list_is_appended_to_and_subtracted_from(
    broker: Broker, steps: Sequence[tuple[int, str]], policy: str
) -> None:
    for operation, text in steps:
        assert alter(broker, (TOPIC, "t", [("cleanup.policy", operation, text)])) == DONE
    assert value(broker, TOPIC, "t", "cleanup.policy") == (policy, OF_TOPIC)


def test_what_is_internal_is_listed_where_it_was_set(broker: Broker) -> None:
    assert "internal.segment.bytes" not in described(broker, TOPIC, "t")
    assert alter(broker, (TOPIC, "t", [("internal.segment.bytes", SET, " 7 ")])) == DONE
    assert value(broker, TOPIC, "t", "internal.segment.bytes") == (" 7 ", OF_TOPIC)
    create(broker, "tiny", internal_segment_bytes="-1")
    assert value(broker, TOPIC, "tiny", "internal.segment.bytes") == ("-1", OF_TOPIC)


REFUSED = [
    (TOPIC, "t", "no.such", SET, "1", ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
    (
        *(TOPIC, "t", "retention.ms", APPEND, "1", ErrorCode.INVALID_CONFIG),
        "Can't APPEND to key retention.ms because its type is not LIST.",
    ),
    (
        *(TOPIC, "t", "no.such", SUBTRACT, "1", ErrorCode.INVALID_CONFIG),
        "Can't SUBTRACT to key no.such because its type is not LIST.",
    ),
    (
        *(TOPIC, "t", "cleanup.policy", APPEND, "compact,x", ErrorCode.INVALID_CONFIG),
        "Invalid value x for configuration cleanup.policy: String must be one of: compact, delete",
    ),
    (
        *(TOPIC, "nope", "retention.ms", SET, "-5", ErrorCode.INVALID_CONFIG),
        "Invalid value -5 for configuration retention.ms: Value must be at least -1",
    ),
    (
        *(TOPIC, "nope", "retention.ms", SET, "5", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        "The topic 'nope' does not exist.",
    ),
    (
        *(TOPIC, "", "retention.ms", SET, "5", ErrorCode.INVALID_REQUEST),
        "Default topic resources are not allowed.",
    ),
    (
        *(TOPIC, "..", "retention.ms", SET, "5", ErrorCode.INVALID_TOPIC_EXCEPTION),
        "Topic name is invalid: '..' is not allowed",
    ),
    (
        *(TOPIC, "t", "retention.ms", SET, None, ErrorCode.INVALID_REQUEST),
        "Null value not supported for : retention.ms",
    ),
    (TOPIC, "t", "retention.ms", 7, "5", ErrorCode.INVALID_REQUEST, "Unknown operations type 7"),
    (3, "t", "x", SET, "1", ErrorCode.INVALID_REQUEST, "Unknown resource type 3"),
    (
        *(BROKER, "2", "log.retention.ms", SET, "5", ErrorCode.INVALID_REQUEST),
        "Unexpected broker id, expected 1, but received 2",
    ),
    (
        *(BROKER, "x", "log.retention.ms", SET, "5", ErrorCode.INVALID_REQUEST),
        "Node id must be an integer, but it is: x",
    ),
    (
        *(BROKER, "1", "num.partitions", SET, "7", ErrorCode.INVALID_REQUEST),
        "Cannot update these configs dynamically: [num.partitions]",
    ),
    (
        *(BROKER, "", "listeners", SET, "PLAINTEXT://:1", ErrorCode.INVALID_REQUEST),
        "Cannot update these configs dynamically: [listeners]",
    ),
    (
        *(BROKER, "1", "listener.name.a.ssl.keystore.location", SET, "x", ErrorCode.INVALID_REQUEST),
        "Cannot update these configs dynamically: [listener.name.a.ssl.keystore.location]",
    ),
    (
        *(BROKER, "1", "ssl.keystore.location", SET, "x", ErrorCode.INVALID_REQUEST),
        "These security configs can be dynamically updated only per-listener using the listener prefix: "
        "[ssl.keystore.location]",
    ),
    (
        *(BROKER, "", "sasl.kerberos.min.time.before.relogin", SET, "58000", ErrorCode.INVALID_REQUEST),
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[sasl.kerberos.min.time.before.relogin]",
    ),
    (
        *(BROKER, "", "sasl.kerberos.min.time.before.relogin", SET, "x", ErrorCode.INVALID_REQUEST),
        "Invalid value x for configuration sasl.kerberos.min.time.before.relogin: Not a number of type LONG",
    ),
    (
        *(BROKER, "1", "ssl.engine.factory.class", SET, "x.Y", ErrorCode.INVALID_REQUEST),
        "Invalid value x.Y for configuration ssl.engine.factory.class: Class x.Y could not be found.",
    ),
    (BROKER, "1", "sasl.kerberos.min.time.before.relogin", SET, "58000", ErrorCode.NONE, None),
    (BROKER, "1", "ssl.provider", SET, "x", ErrorCode.NONE, None),
    (
        *(BROKER, "1", "log.retention.ms", SET, "abc", ErrorCode.INVALID_REQUEST),
        "Invalid value abc for configuration log.retention.ms: Not a number of type LONG",
    ),
    (
        *(BROKER, "1", "log.retention.ms", SET, "0", ErrorCode.INVALID_REQUEST),
        "Invalid value 0 for configuration log.retention.ms: "
        "Value must be -1, which is unlimited, or at least 1",
    ),
    (
        *(BROKER, "1", "log.cleaner.threads", APPEND, "1", ErrorCode.INVALID_CONFIG),
        "Config value append is not allowed for config key: log.cleaner.threads",
    ),
]


@pytest.mark.parametrize(("kind", "name", "config", "operation", "text", "error", "message"), REFUSED)
def test_refusals(
    broker: Broker,
    kind: int,
    name: str,
    config: str,
    operation: int,
    text: str | None,
    error: ErrorCode,
    message: str,
) -> None:
    before = broker.cluster.topics["t"]
    assert alter(broker, (kind, name, [(config, operation, text)])) == [(error, message)]
    assert broker.cluster.topics["t"] == before
    assert described(broker, BROKER, "") == {}


def test_a_resource_is_changed_whole_or_not_at_all(broker: Broker) -> None:
    configs = [("retention.ms", SET, "5"), ("segment.ms", SET, "0")]
    ((error, _),) = alter(broker, (TOPIC, "t", configs))
    assert error is ErrorCode.INVALID_CONFIG
    assert broker.cluster.topics["t"].configs == {}


def test_each_resource_by_itself(broker: Broker) -> None:
    create(broker, "u")
    bad, good = (TOPIC, "t", [("x", SET, "5")]), (TOPIC, "u", [("retention.ms", SET, "5")])
    assert [error for error, _ in alter(broker, bad, good)] == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert broker.cluster.topics["u"].configs == {"retention.ms": "5"}


def test_what_comes_twice_is_refused(broker: Broker) -> None:
    twice = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    first = (TOPIC, "t", [("retention.ms", SET, "5")])
    assert alter(broker, first, (TOPIC, "t", []), (BROKER, "", [])) == [twice, twice, (ErrorCode.NONE, None)]
    keys = (TOPIC, "t", [("retention.ms", SET, "5"), ("retention.ms", SET, "6")])
    assert alter(broker, keys) == [(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")]


def test_validate_only_changes_nothing(broker: Broker) -> None:
    changes = (TOPIC, "t", [("retention.ms", SET, "5")]), (BROKER, "1", [("message.max.bytes", SET, "5")])
    assert alter(broker, *changes, validate_only=True) == 2 * DONE
    assert broker.cluster.topics["t"].configs == {}
    assert value(broker, BROKER, "1", "message.max.bytes") == ("1048588", DEFAULT)


# ---- brokers


def test_a_broker_s_own_config_wins_over_that_of_all(broker: Broker) -> None:
    assert alter(broker, (BROKER, "", [("log.retention.ms", SET, "7")])) == DONE
    assert value(broker, TOPIC, "t", "retention.ms") == ("7", DYNAMIC_DEFAULT)
    assert alter(broker, (BROKER, "1", [("log.retention.ms", SET, "9")])) == DONE
    assert synonyms(described(broker, BROKER, "1")["log.retention.ms"]) == [
        ("log.retention.ms", "9", DYNAMIC),
        ("log.retention.ms", "7", DYNAMIC_DEFAULT),
        ("log.retention.hours", "168", DEFAULT),
    ]
    assert value(broker, TOPIC, "t", "retention.ms") == ("9", DYNAMIC)
    assert set(described(broker, BROKER, "")) == {"log.retention.ms"}
    assert alter(broker, (BROKER, "1", [("log.retention.ms", DELETE, None)])) == DONE
    assert alter(broker, (BROKER, "", [("log.retention.ms", DELETE, None)])) == DONE
    assert value(broker, TOPIC, "t", "retention.ms") == ("604800000", DEFAULT)
    assert described(broker, BROKER, "") == {}


@pytest.mark.parametrize("name", ["01", "+1", "0" * 600 + "1", "\u0661"])
def test_a_broker_by_another_spelling_of_its_number(broker: Broker, name: str) -> None:
    first, second = [("message.max.bytes", SET, "5")], [("log.retention.ms", SET, "7")]
    assert alter(broker, (BROKER, name, first), (BROKER, "1", second)) == 2 * DONE
    assert value(broker, BROKER, "1", "message.max.bytes") == ("5", DYNAMIC)
    assert value(broker, BROKER, name, "log.retention.ms") == ("7", DYNAMIC)


@pytest.mark.parametrize("name", ["1" * 11, "9" * 5000, "\U0001d7cf", "1 ", "--1"])
def test_what_is_no_broker_s_number(broker: Broker, name: str) -> None:
    ((error, message),) = alter(broker, (BROKER, name, [("message.max.bytes", SET, "5")]))
    assert (error, message) == (ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")


def test_what_kafka_does_not_know_is_kept_and_not_shown(broker: Broker) -> None:
    assert alter(broker, (BROKER, "1", [("my.plugin.password", SET, "secret")])) == DONE
    config = described(broker, BROKER, "1")["my.plugin.password"]
    assert (config.value, config.is_sensitive, config.read_only) == (None, True, True)
    assert synonyms(config) == [("my.plugin.password", None, DYNAMIC)]


def test_changes_are_in_force_at_once(broker: Broker) -> None:
    topic = broker.cluster.topics["t"]
    assert broker.cluster.log_config(topic).max_message_bytes == 1048588
    alter(broker, (BROKER, "", [("message.max.bytes", SET, "5000")]))
    assert broker.cluster.log_config(topic).max_message_bytes == 5000
    alter(broker, (TOPIC, "t", [("max.message.bytes", SET, "600"), ("cleanup.policy", SET, "compact")]))
    changed = broker.cluster.log_config(broker.cluster.topics["t"])
    assert (changed.max_message_bytes, changed.compacted) == (600, True)


# ---- durability


def test_the_answer_comes_when_the_change_is_durable_and_so_does_the_change() -> None:
    store = HeldStore()
    broker = new_broker(store)
    created = collect(broker.cluster.create_topics([]))
    assert created == [{}]
    request = incremental_request((BROKER, "", [("message.max.bytes", SET, "5000")]))
    seen = collect(incremental_alter_configs(broker, context(1), request))
    assert (seen, value(broker, BROKER, "1", "message.max.bytes")) == ([], ("1048588", DEFAULT))
    store.release()
    assert seen[0].responses[0].error_code == 0
    assert value(broker, BROKER, "1", "message.max.bytes") == ("5000", DYNAMIC_DEFAULT)


def test_a_change_that_cannot_be_stored_is_not_made() -> None:
    store = HeldStore()
    broker = new_broker(store)
    request = incremental_request((BROKER, "", [("message.max.bytes", SET, "5000")]))
    seen = collect(incremental_alter_configs(broker, context(1), request))
    store.fail()
    assert seen[0].responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert described(broker, BROKER, "") == {}


def test_configs_survive_a_restart() -> None:
    broker = new_broker()
    create(broker, "t")
    alter(
        broker,
        (TOPIC, "t", [("retention.ms", SET, "5")]),
        (BROKER, "1", [("message.max.bytes", SET, "5000")]),
    )
    alter(broker, (BROKER, "", [("log.retention.ms", SET, "7")]), (BROKER, "1", [("no.such", SET, "7")]))
    alter(broker, (BROKER, "1", [("no.such", DELETE, "7")]))

    class Again:
        log, metadata = broker.log, broker.cluster._metadata

    later = new_broker(Again())
    for kind, name in ((TOPIC, "t"), (BROKER, "1"), (BROKER, "")):
        assert described(later, kind, name) == described(broker, kind, name)
    assert value(later, BROKER, "1", "message.max.bytes") == ("5000", DYNAMIC)
