"""Metadata: which topics are described, created, or unknown, by version. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kshim.answering import Broker
from kshim.api.metadata import metadata
from kshim.cluster import NO_LEADER
from kshim.cluster.leaders import stop_broker
from schemas.error_code import ErrorCode
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
)
from tests.api.harness import HeldStore, ask, collect, context, create, new_broker

ZERO = UUID(int=0)
NOT_ASKED_FOR = -(1 << 31)


def request(*names: str | None, ids: tuple[UUID, ...] = (), **more: Any) -> MetadataRequest:
    topics = [MetadataRequestTopic(topic_id=ZERO, name=name) for name in names]
    topics += [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids]
    return MetadataRequest(topics=tuple(topics), **more)


def describe(broker: Broker, asked: MetadataRequest, version: int = 12) -> MetadataResponse:
    response: MetadataResponse = ask(metadata, broker, asked, version)
    return response


def errors(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.fixture
def broker() -> Broker:
    broker = new_broker()
    create(broker, "a", 2)
    create(broker, "b.c")
    return broker


def test_brokers_are_where_the_client_came_in(broker: Broker) -> None:
    response = describe(broker, request())
    assert response.brokers == (
        MetadataResponseBroker(node_id=1, host="kshim.example", port=9092, rack=None),
    )
    assert (response.controller_id, response.cluster_id) == (1, broker.cluster.cluster_id)
    assert response.error_code == 0


def test_null_is_all_and_empty_is_none_but_all_in_v0(broker: Broker) -> None:
    everything = {"__consumer_offsets": 0, "a": 0, "b.c": 0}
    assert errors(describe(broker, MetadataRequest(topics=None))) == everything
    assert errors(describe(broker, MetadataRequest(topics=None), 1)) == everything
    assert errors(describe(broker, request(), 0)) == everything
    assert errors(describe(broker, request(), 1)) == {}


def test_a_topic_with_its_partitions(broker: Broker) -> None:
    (topic,) = describe(broker, request("a")).topics
    assert (topic.name, topic.topic_id) == ("a", broker.cluster.topics["a"].topic_id)
    assert (topic.error_code, topic.is_internal) == (0, False)
    assert topic.partitions == tuple(
        MetadataResponsePartition(
            error_code=0,
            partition_index=index,
            leader_id=1,
            leader_epoch=0,
            replica_nodes=(1,),
            isr_nodes=(1,),
            offline_replicas=(),
        )
        for index in range(2)
    )


def test_the_internal_topic(broker: Broker) -> None:
    (topic,) = describe(broker, request("__consumer_offsets")).topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 50)
    (absent,) = describe(broker, request("__transaction_state", allow_auto_topic_creation=False)).topics
    assert (absent.is_internal, absent.error_code) == (True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_name_given_twice_is_described_once(broker: Broker) -> None:
    assert [topic.name for topic in describe(broker, request("a", "b.c", "a")).topics] == ["a", "b.c"]


# ---- auto-creation


@pytest.mark.parametrize("version", [0, 3, 4, 13])
def test_a_missing_topic_is_made_and_described_at_once(broker: Broker, version: int) -> None:
    """Kafka answers UNKNOWN_TOPIC_OR_PARTITION the first time, and has the topic the next time."""
    (topic,) = describe(broker, request("new"), version).topics
    assert (topic.error_code, len(topic.partitions), topic.partitions[0].leader_id) == (0, 1, 1)


def test_it_gets_the_partitions_that_the_broker_is_configured_for() -> None:
    broker = new_broker(num_partitions=7)
    (topic,) = describe(broker, request("new")).topics
    assert len(topic.partitions) == 7


def test_nothing_is_made_where_the_client_or_the_broker_says_so(broker: Broker) -> None:
    unknown = {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert errors(describe(broker, request("new", allow_auto_topic_creation=False))) == unknown
    closed = new_broker(auto_create_topics_enable=False)
    assert errors(describe(closed, request("new"))) == unknown
    assert errors(describe(closed, request("new"), 3)) == unknown
    assert "new" not in broker.cluster.topics


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "é", "x" * 250])
def test_names_that_no_topic_can_have(broker: Broker, name: str) -> None:
    for allowed in (True, False):
        response = describe(broker, request(name, allow_auto_topic_creation=allowed))
        assert errors(response) == {name: ErrorCode.INVALID_TOPIC_EXCEPTION}


def test_a_name_that_collides_is_not_made(broker: Broker) -> None:
    assert errors(describe(broker, request("b_c"))) == {"b_c": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_two_clients_that_ask_at_the_same_time_get_the_same_topic() -> None:
    store = HeldStore()
    broker = new_broker(store)
    seen = [collect(metadata(broker, context(12), request("new"))) for _ in range(2)]
    assert seen == [[], []]
    store.release_all()
    ids = {answer[0].topics[0].topic_id for answer in seen}
    assert ids == {broker.cluster.topics["new"].topic_id}


def test_a_topic_that_cannot_be_stored_is_a_storage_error() -> None:
    store = HeldStore()
    broker = new_broker(store)
    seen = collect(metadata(broker, context(12), request("new", "__consumer_offsets")))
    store.fail()
    assert errors(seen[0]) == {"new": ErrorCode.KAFKA_STORAGE_ERROR, "__consumer_offsets": 0}


# ---- topic ids


def test_by_topic_id(broker: Broker) -> None:
    topic_id = broker.cluster.topics["a"].topic_id
    (topic,) = describe(broker, request(ids=(topic_id, topic_id))).topics
    assert (topic.name, topic.error_code) == ("a", 0)


def test_an_unknown_topic_id(broker: Broker) -> None:
    (topic,) = describe(broker, request(ids=(UUID(int=9),))).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, UUID(int=9))


def test_beside_an_id_names_do_not_count(broker: Broker) -> None:
    topic_id = broker.cluster.topics["a"].topic_id
    assert errors(describe(broker, request("b.c", "new", ids=(topic_id,)))) == {"a": 0}
    wrong_name = MetadataRequest(topics=(MetadataRequestTopic(topic_id=topic_id, name="zzz"),))
    assert errors(describe(broker, wrong_name)) == {"a": 0}


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_an_error_before_v12(broker: Broker, version: int) -> None:
    topic_id = broker.cluster.topics["a"].topic_id
    response = describe(broker, request("a", "__consumer_offsets", ids=(topic_id, topic_id)), version)
    assert [(topic.name, topic.topic_id) for topic in response.topics] == [
        ("a", ZERO),
        ("__consumer_offsets", ZERO),
        ("", topic_id),
        ("", topic_id),
    ]
    assert {topic.error_code for topic in response.topics} == {ErrorCode.INVALID_REQUEST}
    assert not any(topic.is_internal for topic in response.topics)
    assert (response.brokers, response.cluster_id, response.controller_id) == ((), None, -1)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (10, ErrorCode.INVALID_REQUEST),
        (11, ErrorCode.INVALID_REQUEST),
        (12, ErrorCode.UNKNOWN_SERVER_ERROR),
        (13, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_neither_a_name_nor_an_id(broker: Broker, version: int, error: ErrorCode) -> None:
    response = describe(broker, request("a", None, "new"), version)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("a", error),
        ("", error),
        ("new", error),
    ]
    assert (response.brokers, response.error_code) == ((), error)
    assert "new" not in broker.cluster.topics
    topic_id = broker.cluster.topics["a"].topic_id
    if version >= 12:
        assert errors(describe(broker, request(None, ids=(topic_id,)), version)) == {"a": 0}


# ---- authorized operations


def test_operations_are_a_bitmask_if_asked_for(broker: Broker) -> None:
    response = describe(broker, request("a"), 8)
    assert response.cluster_authorized_operations == NOT_ASKED_FOR
    assert response.topics[0].topic_authorized_operations == NOT_ASKED_FOR
    response = describe(
        broker,
        request(
            "a",
            "none",
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        ),
        8,
    )
    assert response.cluster_authorized_operations == 8096
    assert [topic.topic_authorized_operations for topic in response.topics] == [3576, 3576]


def test_a_large_topic_is_described_as_it_is_now() -> None:
    broker = new_broker(brokers=2)
    create(broker, "large", 100)

    def leaders(version: int = 12) -> list[int]:
        (topic,) = describe(broker, request("large"), version).topics
        return [partition.leader_id for partition in topic.partitions]

    before = leaders()
    assert before == leaders(5) == leaders() == [1, 2] * 50
    moved = collect(stop_broker(broker.cluster, 2))
    assert moved
    assert leaders() == [1, NO_LEADER] * 50
    collect(broker.cluster.add_partitions("large", 101))
    assert len(leaders()) == 101


def asks_for_long(broker: Broker, asked: MetadataRequest) -> None:
    clock: Any = broker.clock
    for _ in range(8):
        describe(broker, asked)
        clock.advance(2)


def test_a_client_that_never_comes_is_told_where_it_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    broker = new_broker()
    create(broker, "t")
    caplog.clear()
    asks_for_long(broker, request("t"))
    assert caplog.messages == [
        "127.0.0.1:51000 (client_id 'test'): it asked 6 times in 10 s where the brokers are, and never came "
        "to kshim.example:9092: if clients cannot reach that address, correct advertised.listeners "
        "(--advertise)"
    ]


def test_who_waits_for_a_topic_is_not_meant(caplog: pytest.LogCaptureFixture) -> None:
    broker = new_broker(auto_create_topics_enable=False)
    caplog.clear()
    asks_for_long(broker, request("missing"))
    assert caplog.messages == []


def test_who_waits_for_a_stopped_broker_is_not_meant(caplog: pytest.LogCaptureFixture) -> None:
    broker = new_broker(brokers=2)
    create(broker, "t")
    stop_broker(broker.cluster, 2)
    caplog.clear()
    asks_for_long(broker, request("t"))
    assert caplog.messages == []


@pytest.mark.parametrize(("topics", "version"), [(None, 12), ((), 0)])
def test_who_lists_all_topics_has_what_it_wants(
    topics: Any, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    broker = new_broker()
    create(broker, "t")
    describe(broker, request("t"))
    describe(broker, MetadataRequest(topics=topics), version)
    caplog.clear()
    asks_for_long(broker, request("t"))
    assert caplog.messages == []
