"""CreateTopics: what is created, and how errors are worded. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.answering import Broker
from kshim.api.create_topics import create_topics
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.api.harness import HeldStore, ask, collect, context, new_broker


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = (),
    **configs: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in assignments
        ),
        configs=tuple(
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ),
    )


def make(broker: Broker, *topics: CreatableTopic, validate_only: bool = False) -> Any:
    return ask(
        create_topics, broker, CreateTopicsRequest(topics=topics, validate_only=validate_only), 7
    ).topics


def make_one(broker: Broker, *args: Any, validate_only: bool = False, **more: Any) -> Any:
    (result,) = make(broker, topic(*args, **more), validate_only=validate_only)
    return result


@pytest.fixture
def broker() -> Broker:
    return new_broker(num_partitions=3)


def test_a_topic_is_made_and_described(broker: Broker) -> None:
    made = make_one(broker, "t", 2, retention_ms="5")
    assert (made.error_code, made.error_message) == (0, None)
    assert (made.num_partitions, made.replication_factor) == (2, 1)
    assert made.topic_id == broker.cluster.topics["t"].topic_id
    configs = {config.name: (config.value, config.config_source) for config in made.configs}
    assert configs["retention.ms"] == ("5", 1)
    assert configs["cleanup.policy"] == ("delete", 5)
    assert list(configs) == sorted(configs)


def test_minus_one_is_the_default(broker: Broker) -> None:
    made = make_one(broker, "t", -1, -1)
    assert (made.num_partitions, made.replication_factor) == (3, 1)


def test_validate_only_makes_nothing(broker: Broker) -> None:
    made = make_one(broker, "t", 2, validate_only=True)
    assert (made.error_code, made.num_partitions) == (0, 2)
    assert "t" not in broker.cluster.topics
    first = make_one(broker, "t", 2)
    assert first.error_code == 0
    assert [p.partition_no for p in broker.cluster.topics["t"].partitions] == [50, 51]


REFUSED: dict[str, tuple[dict[str, Any], ErrorCode, str]] = {
    "empty name": ({"name": ""}, ErrorCode.INVALID_TOPIC_EXCEPTION, "the empty string is not allowed"),
    "dot": ({"name": "."}, ErrorCode.INVALID_TOPIC_EXCEPTION, "'.' is not allowed"),
    "long name": (
        {"name": "x" * 250},
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "longer than the max allowed length 249",
    ),
    "letters": (
        {"name": "a b"},
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
    ),
    "there": ({"name": "old.topic"}, ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'old.topic' already exists."),
    "there, and more is wrong": (
        {"name": "old.topic", "partitions": 0, "retention_ms": "x"},
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "already exists",
    ),
    "collision": (
        {"name": "old_topic"},
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic 'old_topic' collides with existing topic: old.topic",
    ),
    "metadata topic": ({"name": "__cluster_metadata"}, ErrorCode.INVALID_REQUEST, "is prohibited"),
    "no partitions": ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS, "invalid non-positive value"),
    "too many": (
        {"partitions": 10_001},
        ErrorCode.POLICY_VIOLATION,
        "Excessively large number of partitions",
    ),
    "no replicas": ({"replicas": 0}, ErrorCode.INVALID_REPLICATION_FACTOR, "must be larger than 0, or -1"),
    "no replicas of no partitions": (
        {"partitions": 0, "replicas": 0},
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "larger than 0",
    ),
    "replicas": (
        {"replicas": 2},
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The target replication factor of 2 cannot be reached because only 1 broker(s) are registered "
        "or some brokers have all their log directories cordoned.",
    ),
    "unknown config": ({"nonsense": "1"}, ErrorCode.INVALID_CONFIG, "Unknown topic config name: nonsense"),
    "config before partitions": (
        {"retention_ms": "x", "partitions": 0},
        ErrorCode.INVALID_CONFIG,
        "retention.ms",
    ),
    "assignments and replicas": (
        {"assignments": ((0, (1,)),), "partitions": -1},
        ErrorCode.INVALID_REQUEST,
        "but replication factor was not set to -1.",
    ),
    "assignments and partitions": (
        {"assignments": ((0, (1,)),), "replicas": -1},
        ErrorCode.INVALID_REQUEST,
        "but numPartitions was not set to -1.",
    ),
}


@pytest.mark.parametrize(("wanted", "error", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals(broker: Broker, wanted: dict[str, Any], error: ErrorCode, words: str) -> None:
    make(broker, topic("old.topic"))
    before = dict(broker.cluster.topics)
    refused = make_one(broker, **{"name": "t", **wanted})
    assert (refused.error_code, refused.num_partitions, refused.replication_factor) == (error, -1, -1)
    assert words in refused.error_message
    assert (refused.configs, refused.topic_id.int) == ((), 0)
    assert broker.cluster.topics == before


ASSIGNMENTS = {
    "one": (((0, (1,)),), None),
    "in any order": (((1, (1,)), (0, (1,))), None),
    "no first": (((1, (1,)),), "partitions should be a consecutive 0-based integer sequence"),
    "a gap": (((0, (1,)), (2, (1,))), "partitions should be a consecutive 0-based integer sequence"),
    "twice": (((0, (1,)), (0, (1,))), "Found multiple manual partition assignments for partition 0"),
    "stranger": (((0, (2,)),), "includes broker 2, but no such broker is registered."),
    "nobody": (((0, ()),), "includes an empty replica list."),
    "one broker twice": (((0, (1, 1)),), "includes the broker 1 more than once."),
}


@pytest.mark.parametrize(("assignments", "fault"), ASSIGNMENTS.values(), ids=ASSIGNMENTS)
def test_assignments(broker: Broker, assignments: Any, fault: str | None) -> None:
    made = make_one(broker, "t", -1, -1, assignments)
    if fault is None:
        assert (made.error_code, made.num_partitions) == (0, len(assignments))
    else:
        assert made.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert made.error_message.endswith(fault)


CONFIGS = {
    "retention.ms=x": "Invalid value x for configuration retention.ms: Not a number of type LONG",
    "retention.ms=-2": "Invalid value -2 for configuration retention.ms: Value must be at least -1",
    "retention.ms=": "Invalid value  for configuration retention.ms: Not a number of type LONG",
    "retention.ms= 7 ": None,
    "retention.ms=+5": None,
    "segment.bytes=99999999999": (
        "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT"
    ),
    "segment.bytes=10": "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576",
    "cleanup.policy=": None,
    "cleanup.policy=compact, delete": None,
    "cleanup.policy=compact,foo": (
        "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete"
    ),
    "cleanup.policy=compact,": "Configuration 'cleanup.policy' values must not be empty.",
    "compression.gzip.level=0": (
        "Invalid value 0 for configuration compression.gzip.level: "
        "Value must be between 1 and 9 or equal to -1"
    ),
    "compression.lz4.level=18": (
        "Invalid value 18 for configuration compression.lz4.level: Value must be no more than 17"
    ),
    "preallocate=TRUE": None,
    "preallocate=maybe": (
        "Invalid value maybe for configuration preallocate: Expected value to be either true or false"
    ),
    "min.cleanable.dirty.ratio=2": (
        "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"
    ),
    "min.cleanable.dirty.ratio=x": (
        "Invalid value x for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE"
    ),
    "message.timestamp.type= LogAppendTime ": None,
    "leader.replication.throttled.replicas=*": None,
    "leader.replication.throttled.replicas=0:1, 1:1": None,
    "leader.replication.throttled.replicas=x": (
        "Invalid value [x] for configuration leader.replication.throttled.replicas: "
        "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the "
        "following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    ),
    "remote.storage.enable=true": (
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
        "storage."
    ),
    "message.format.version=2.8": "Unknown topic config name: message.format.version",
}


@pytest.mark.parametrize(("config", "fault"), CONFIGS.items(), ids=CONFIGS)
def test_config_values(broker: Broker, config: str, fault: str | None) -> None:
    name, value = config.split("=", 1)
    made = make_one(broker, "t", validate_only=False, **{name: value})
    assert (made.error_code, made.error_message) == (ErrorCode.INVALID_CONFIG if fault else 0, fault)
    if fault is None:
        assert broker.cluster.topics["t"].configs == {name: value}


def test_config_values_that_contradict_each_other(broker: Broker) -> None:
    made = make_one(broker, "t", min_compaction_lag_ms="10", max_compaction_lag_ms="5")
    assert made.error_message == (
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    )


def test_null_values(broker: Broker) -> None:
    made = make_one(broker, "t", segment_ms=None, retention_ms=None)
    assert made.error_message == "Null value not supported for topic configs: retention.ms,segment.ms"


def test_each_topic_of_a_request_by_itself(broker: Broker) -> None:
    answers = {
        answer.name: answer.error_code
        for answer in make(broker, topic("d"), topic("a b"), topic("d"), topic("z"))
    }
    assert answers == {"z": 0, "a b": ErrorCode.INVALID_TOPIC_EXCEPTION, "d": ErrorCode.INVALID_REQUEST}
    assert "d" not in broker.cluster.topics


def test_the_answer_comes_when_the_topic_is_durable_and_so_does_the_topic() -> None:
    store = HeldStore()
    broker = new_broker(store)
    seen = collect(create_topics(broker, context(7), CreateTopicsRequest(topics=(topic("t"),))))
    assert (seen, "t" in broker.cluster.topics) == ([], False)
    store.release()
    assert (seen[0].topics[0].error_code, "t" in broker.cluster.topics) == (0, True)


def test_of_two_creations_at_the_same_time_one_is_too_late() -> None:
    store = HeldStore()
    broker = new_broker(store)
    request = CreateTopicsRequest(topics=(topic("t"),))
    seen = [collect(create_topics(broker, context(7), request)) for _ in range(2)]
    store.release_all()
    assert [answer[0].topics[0].error_code for answer in seen] == [0, ErrorCode.TOPIC_ALREADY_EXISTS]


def test_a_topic_that_cannot_be_stored_is_not_there() -> None:
    store = HeldStore()
    broker = new_broker(store)
    request = CreateTopicsRequest(topics=(topic("t"),))
    seen = collect(create_topics(broker, context(7), request))
    store.fail()
    assert seen[0].topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "t" not in broker.cluster.topics
    again = collect(create_topics(broker, context(7), request))
    store.release_all()
    assert again[0].topics[0].error_code == 0


TOO_MANY = "Excessively large number of partitions per request."
TOO_LARGE = "Unable to perform excessively large batch operation."


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([topic("a", 6000), topic("b", 6000)], TOO_MANY),
        ([topic("!bad", 5), topic("a", 6000), topic("b", 6000)], TOO_MANY),
        ([topic("n", -5), topic("b", 10_001)], TOO_MANY),
        ([topic("a", 9_998), topic("b", -1)], TOO_MANY),  # three by default
        ([topic("a", 9_999), topic("b", 1)], TOO_LARGE),
        ([topic("a", 10_000)], TOO_LARGE),
        ([topic("a", 9_999, retention_ms="5")], TOO_LARGE),
    ],
)
@pytest.mark.parametrize("validate_only", [True, False])
def test_partitions_of_a_request_count_together(
    broker: Broker, wanted: list[CreatableTopic], message: str, validate_only: bool
) -> None:
    before = dict(broker.cluster.topics)
    results = make(broker, *wanted, validate_only=validate_only)
    assert [(each.name, each.error_code, each.error_message) for each in results] == [
        (each.name, ErrorCode.POLICY_VIOLATION, message) for each in wanted
    ]
    assert broker.cluster.topics == before


def test_as_many_partitions_as_fit(broker: Broker) -> None:
    assert make_one(broker, "a", 9_999, validate_only=True).error_code == 0
    twice = make(broker, topic("a", 6000), topic("a", 6000), topic("c", 1), validate_only=True)
    assert {each.name: each.error_code for each in twice} == {"c": 0, "a": ErrorCode.INVALID_REQUEST}
