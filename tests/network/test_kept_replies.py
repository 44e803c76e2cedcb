"""Replies that are kept: the same bytes as an answer that is made anew, whatever has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kshim.answering import Broker
from kshim.answering import replies as kept_replies
from kshim.answering.replies import Question, Replies
from kshim.callers import Client
from kshim.cluster import NewTopic
from kshim.cluster.features import TRANSACTION_VERSION, FeatureUpdate, UpgradeType
from kshim.cluster.leaders import move_leader, start_broker, stop_broker
from kshim.configs.endpoint import Endpoint
from kshim.network.dispatch import API, answer
from kshim.testing.wire import payload
from kshim.turns import Turn
from schemas.api_key import ApiKey
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.api.harness import create, new_broker, result

JAVA = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.2.0")
ONE_TOPIC = MetadataRequest(topics=(MetadataRequestTopic(name="one"),), allow_auto_topic_creation=False)
REQUESTS = {
    "api versions": (ApiKey.API_VERSIONS, 4, JAVA),
    "one topic": (ApiKey.METADATA, 12, ONE_TOPIC),
    "all topics": (ApiKey.METADATA, 9, MetadataRequest(topics=None)),
    "coordinator": (ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="group")),
    "coordinators": (ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(coordinator_keys=("a", "b"))),
}
CHANGES: dict[str, Callable[[Broker], Any]] = {
    "a topic is created": lambda broker: create(broker, "two"),
    "a topic is deleted": lambda broker: broker.cluster.delete_topics([broker.cluster.topics["one"]]),
    "a topic grows": lambda broker: broker.cluster.add_partitions("one", 5),
    "a broker stops": lambda broker: stop_broker(broker.cluster, 2),
    "the last broker stops": lambda broker: [stop_broker(broker.cluster, each) for each in (1, 2)],
    "a broker starts": lambda broker: [stop_broker(broker.cluster, 2), start_broker(broker.cluster, 2)],
    "a leader moves": lambda broker: [move_leader(broker.cluster, ("one", index), 2) for index in range(3)],
    "a feature is changed": lambda broker: broker.cluster.features.update(
        [FeatureUpdate(TRANSACTION_VERSION, 1, UpgradeType.SAFE_DOWNGRADE)], lambda: 1
    ),
}


@pytest.fixture
def broker() -> Broker:
    broker = new_broker(brokers=2, default_replication_factor=2)
    create(broker, "one", 3)
    return broker


def client(host: str = "10.0.0.7", advertised: str = "kshim.example") -> Client:
    return Client(f"/{host}", Endpoint(host, 51000), Endpoint(advertised, 9092))


def arrived(broker: Broker) -> Client:
    """A client that has come to the brokers."""
    known = client()
    broker.arrivals.asked(known, names_any=True)
    broker.arrivals.came(known)
    return known


def frame(name: str, correlation_id: int = 7) -> bytes:
    _, version, request = REQUESTS[name]
    return payload(version, request, "c", correlation_id)


def ask(broker: Broker, name: str, asking: Client, correlation_id: int = 7) -> Any:
    return result(answer(broker, frame(name, correlation_id), asking, Turn()))


def is_kept(broker: Broker, name: str, asking: Client) -> bool:
    question = Question(frame(name), broker.node_id, broker.cluster.writer.version)
    return broker.replies.find(question, asking) is not None


def no_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is answered anew from now on."""
    for api_key in (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR):
        monkeypatch.setattr(API[api_key], "function", None)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_reply_differs_in_its_correlation_id_alone(
    name: str, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = arrived(broker)
    first = ask(broker, name, known)
    no_function(monkeypatch)
    assert ask(broker, name, known, correlation_id=-2) == b"\xff\xff\xff\xfe" + first[4:]


@pytest.mark.parametrize("change", CHANGES)
def test_no_reply_outlives_a_change(change: str, broker: Broker) -> None:
    known = arrived(broker)
    before = {name: ask(broker, name, known) for name in REQUESTS}
    CHANGES[change](broker)
    after = {name: ask(broker, name, known) for name in REQUESTS}
    assert after == {
        name: ask(replace(broker, replies=Replies(broker.cluster.writer)), name, known) for name in REQUESTS
    }
    assert after != before


def test_topics_are_seen_one_by_one_while_many_are_created(broker: Broker) -> None:
    known = arrived(broker)
    seen: list[bytes] = []

    async def pause(_: int) -> None:
        seen.append(ask(broker, "all topics", known))

    wanted = [NewTopic(name, 1, 1) for name in ("two", "three")]
    result(broker.cluster.create_topics(wanted, pause=pause))
    assert [reply.count(b"two") + reply.count(b"three") for reply in seen] == [0, 0, 1, 2]


def test_a_broker_without_partitions_that_stops_is_seen() -> None:
    broker = new_broker(brokers=2, offsets_topic_num_partitions=1, offsets_topic_replication_factor=1)
    known = arrived(broker)
    before = ask(broker, "all topics", known)
    assert all(2 not in each.replicas for each in broker.cluster.group_metadata_topic.partitions)
    result(stop_broker(broker.cluster, 2))
    after = ask(broker, "all topics", known)
    assert len(after) < len(before)


def test_each_broker_and_each_address_has_its_own(broker: Broker) -> None:
    known = arrived(broker)
    elsewhere = replace(known, advertised=Endpoint("elsewhere.example", 9092))
    second = replace(broker, node_id=2)
    for name in ("one topic", "coordinator"):
        asked = [(broker, known), (broker, elsewhere), (second, known)]
        assert len({ask(server, name, asking) for server, asking in asked}) == 3


def test_an_error_is_not_kept(broker: Broker) -> None:
    """Its client asks again, and may be one that cannot reach the brokers."""
    known = arrived(broker)
    result(broker.cluster.delete_topics([broker.cluster.topics["one"]]))
    ask(broker, "one topic", known)
    assert not is_kept(broker, "one topic", known)


def test_each_connection_is_known_by_its_software(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    first = arrived(broker)
    ask(broker, "api versions", first)
    no_function(monkeypatch)
    other = client()
    ask(broker, "api versions", other)
    assert other.software == "apache-kafka-java 4.2.0"


def test_who_only_asks_is_answered_anew(broker: Broker) -> None:
    """It may be unable to reach the brokers, which is noticed where questions are answered."""
    ask(broker, "one topic", arrived(broker))
    asking = client("10.0.0.8")
    ask(broker, "one topic", asking)
    ask(broker, "one topic", asking)
    assert broker.arrivals.asking["10.0.0.8"].times == 2


def test_the_oldest_reply_goes_and_a_large_one_is_not_kept(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = arrived(broker)
    monkeypatch.setattr(kept_replies, "MOST_REPLIES", 2)
    names = ["one topic", "coordinator", "coordinators"]
    for name in names:
        ask(broker, name, known)
    found = [is_kept(broker, name, known) for name in names]
    assert found == [False, True, True]
    monkeypatch.setattr(kept_replies, "MOST_BYTES", 100)
    ask(broker, "all topics", known)
    assert not is_kept(broker, "all topics", known)
