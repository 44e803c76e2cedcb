"""Requests of clients with quotas: what counts, their throttle times, how long their connection is muted."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from kshim.answering import Broker
from kshim.callers import Client
from kshim.callers.principal import Principal
from kshim.cluster import NewTopic
from kshim.cluster.client_quotas import QuotaChange, new_entity
from kshim.configs.endpoint import Endpoint
from kshim.network.dispatch import answer
from kshim.testing.wire import api_key_of, payload
from kshim.turns import Turn
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from schemas.registry import decode_response
from tests.api.harness import HERE, HeldStore, advance, batch, create, later, new_broker, result


def set_quota(broker: Broker, *entity: tuple[str, str | None], **quotas: float | None) -> None:
    change = QuotaChange(new_entity(entity), quotas)
    assert result(broker.cluster.client_quotas.alter([change])) == [None]


class Talker:
    """A client that asks a broker."""

    def __init__(self, broker: Broker, client_id: str | None = "c", user: str = "ANONYMOUS") -> None:
        self.broker, self.client_id = broker, client_id
        self.client = Client("/10.0.0.7", Endpoint("10.0.0.7", 51000), HERE, Principal("User", user))
        self.turn = Turn()
        self.size = 0

    def send(self, version: int, request: Any) -> Any:
        """Send a request, and return what `heard` returns."""
        self.turn = Turn()
        self.api_key, self.version = api_key_of(request), version
        frame = payload(version, request, self.client_id)
        self.size = len(frame)
        return later(answer(self.broker, frame, self.client, self.turn))

    def heard(self, reply: Any) -> Any:
        return decode_response(self.api_key, self.version, bytes(result(reply)))[1]

    def ask(self, version: int, request: Any) -> Any:
        return self.heard(self.send(version, request))

    def throttled(self, version: int, request: Any) -> int:
        """The throttle time in the answer, for which the connection is muted."""
        told: int = self.ask(version, request).throttle_time_ms
        assert self.turn.throttle_ms == told
        return told


def producing(*values: bytes, acks: int = 1) -> ProduceRequest:
    data = (PartitionProduceData(index=0, records=batch(*values)),)
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=(TopicProduceData(name="t", partition_data=data),)
    )


def fetching(session_id: int = 0, epoch: int = -1, offset: int = 0, max_wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = (FetchTopic(topic="t", partitions=(partition,)),)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=epoch,
        topics=topics if epoch < 1 else (),
    )


@pytest.fixture
def broker() -> Broker:
    broker = new_broker()
    create(broker, "t")
    return broker


# ---- bytes


def test_a_produce_counts_with_its_frame(broker: Broker) -> None:
    set_quota(broker, ("client-id", "c"), producer_byte_rate=10)
    talker = Talker(broker)
    told = talker.throttled(9, producing(b"x" * 1000))
    assert told == talker.size * 100 - 10_000
    assert broker.quotas.throttled == {"producer_byte_rate": 1}
    other = Talker(broker, "d")
    assert other.throttled(9, producing(b"x" * 1000)) == 0
    assert broker.log.offsets(broker.cluster.topics["t"].partitions[0].partition_no).log_end_offset == 2


def test_a_produce_without_a_reply_mutes_all_the_same(broker: Broker) -> None:
    set_quota(broker, ("client-id", "c"), producer_byte_rate=10, request_percentage=1e-9)
    talker = Talker(broker)
    assert result(talker.send(9, producing(b"x" * 1000, acks=0))) is None
    assert talker.turn.throttle_ms == talker.size * 100 - 10_000


def test_time_that_goes_by_counts(broker: Broker) -> None:
    set_quota(broker, ("client-id", "c"), producer_byte_rate=10)
    talker = Talker(broker)
    told = talker.throttled(9, producing(b"x" * 1000))
    advance(broker, told + 10_000)
    assert talker.throttled(9, producing()) == max(0, talker.size * 100 - 10_000)


def test_a_produce_whose_client_must_wait_is_answered_alone() -> None:
    """Its throttle time begins when it comes, not when it is on disk."""
    store = HeldStore()
    broker = new_broker(store)
    of_one = QuotaChange(new_entity([("client-id", "c")]), {"producer_byte_rate": 100})
    asked = broker.cluster.client_quotas.alter([of_one]), broker.cluster.create_topics([NewTopic("t", 1, 1)])
    store.release_all()
    assert result(asked[0]) == [None]
    small, large, other = Talker(broker), Talker(broker), Talker(broker, "d")
    replies = [
        small.send(9, producing()),
        large.send(9, producing(b"x" * 2000)),
        other.send(9, producing(b"x" * 2000)),
    ]
    assert [talker.turn.is_alone for talker in (small, large, other)] == [False, True, False]
    advance(broker, 300)
    store.release_all()
    assert large.heard(replies[1]).throttle_time_ms == (small.size + large.size) * 10 - 10_300
    assert small.heard(replies[0]).throttle_time_ms == other.heard(replies[2]).throttle_time_ms == 0


def test_a_fetch_beyond_the_quota_is_answered_without_records(broker: Broker) -> None:
    Talker(broker).ask(9, producing(b"x" * 4000))
    set_quota(broker, ("client-id", "c"), consumer_byte_rate=500)
    talker = Talker(broker)
    first = talker.ask(12, fetching())
    assert len(first.responses[0].partitions[0].records) > 4000
    assert first.throttle_time_ms == 0
    second = talker.ask(12, fetching())
    assert (second.responses, second.session_id, second.error_code) == ((), 0, 0)
    assert second.throttle_time_ms == talker.turn.throttle_ms > 5_000
    advance(broker, 10_999)
    assert talker.throttled(12, fetching()) > 0
    advance(broker, 1)
    assert talker.throttled(12, fetching()) == 0, "what was not sent did not count"


@pytest.mark.parametrize("version", [4, 7, 11, 12])
def test_a_fetch_counts_with_its_body_and_its_size(broker: Broker, version: int) -> None:
    Talker(broker).ask(9, producing(b"x" * 1000))
    free = bytes(result(Talker(broker).send(version, fetching())))
    set_quota(broker, ("client-id", "c"), consumer_byte_rate=1)
    header_bytes = 5 if version >= 12 else 4
    assert Talker(broker).throttled(version, fetching()) == (len(free) - header_bytes + 4) * 1000 - 10_000


def test_a_fetch_is_answered_no_more_than_the_quota_allows_in_its_window(broker: Broker) -> None:
    for _ in range(20):
        Talker(broker).ask(9, producing(b"x" * 1000))
    set_quota(broker, ("client-id", "c"), consumer_byte_rate=500)
    answered = Talker(broker).ask(12, fetching())
    assert 3000 < len(answered.responses[0].partitions[0].records) <= 5000
    assert answered.throttle_time_ms == 0


def test_a_fetch_session_outlives_a_throttled_fetch(broker: Broker) -> None:
    Talker(broker).ask(9, producing(b"x" * 4000))
    set_quota(broker, ("client-id", "c"), consumer_byte_rate=500)
    talker = Talker(broker)
    begun = talker.ask(12, fetching(epoch=0))
    assert begun.session_id
    Talker(broker, "d").ask(9, producing(b"x" * 4000))
    throttled = talker.ask(12, fetching(begun.session_id, 1))
    assert (throttled.session_id, throttled.error_code) == (begun.session_id, 0)
    assert throttled.throttle_time_ms > 0
    advance(broker, 20_000)
    again = talker.ask(12, fetching(begun.session_id, 2))
    assert (again.throttle_time_ms, len(again.responses)) == (0, 1)


def test_a_throttled_fetch_begins_no_session(broker: Broker) -> None:
    Talker(broker).ask(9, producing(b"x" * 1000))
    set_quota(broker, ("client-id", "c"), consumer_byte_rate=1)
    assert Talker(broker).ask(12, fetching(epoch=0)).session_id == 0
    assert len(broker.fetch_sessions) == 0


def test_a_parked_fetch_is_counted_when_it_is_answered(broker: Broker) -> None:
    set_quota(broker, ("client-id", "c"), consumer_byte_rate=1)
    talker = Talker(broker)
    reply = talker.send(12, fetching(max_wait_ms=500))
    assert not reply.called
    Talker(broker, "d").ask(9, producing(b"x" * 1000))
    response = talker.heard(reply)
    assert response.responses == ()
    assert response.throttle_time_ms == talker.turn.throttle_ms > 1_000_000


# ---- time


def test_requests_count_with_their_time(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    set_quota(broker, ("user", None), request_percentage=0.01)
    clock = iter(range(1000))
    monkeypatch.setattr(broker.quotas, "_usage", broker.quotas._usage._replace(timer_s=lambda: next(clock)))
    monkeypatch.setattr("kshim.network.metered.perf_counter", lambda: next(clock))
    for version, request in (
        (3, FindCoordinatorRequest(key="g")),
        (9, MetadataRequest(topics=())),
        (9, producing()),
        (12, fetching()),
    ):
        assert Talker(broker).throttled(version, request) == 1000, "no longer than one sample"
    assert broker.quotas.throttled == {"request_percentage": 4}


def test_answers_that_cannot_tell_are_muted_all_the_same(broker: Broker) -> None:
    set_quota(broker, ("user", None), request_percentage=1e-9)
    talker = Talker(broker)
    assert not hasattr(talker.ask(0, ApiVersionsRequest()), "no such field")
    assert talker.turn.throttle_ms == 1000
    assert talker.ask(0, ApiVersionsRequest()).throttle_time_ms == 0, "v0 has no field for it"


# ---- mutations


def creating(*names: str, partitions: int = 1, validate_only: bool = False) -> CreateTopicsRequest:
    topics = (CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names)
    return CreateTopicsRequest(topics=tuple(topics), timeout_ms=1000, validate_only=validate_only)


def test_topics_are_refused_while_tokens_are_owed(broker: Broker) -> None:
    set_quota(broker, ("user", None), controller_mutation_rate=1)
    talker = Talker(broker)
    made = talker.ask(7, creating("a", "b", "c", partitions=8))
    assert [topic.error_code for topic in made.topics] == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert made.topics[2].error_message is None
    assert made.throttle_time_ms == talker.turn.throttle_ms == 5000
    advance(broker, 5000)
    assert talker.throttled(7, creating("c", partitions=8)) == 0
    assert talker.throttled(7, creating("d")) == 8000


@pytest.mark.parametrize(("version", "is_refused"), [(5, False), (6, True)])
def test_from_which_version_topics_are_refused(broker: Broker, version: int, is_refused: bool) -> None:
    set_quota(broker, ("user", None), controller_mutation_rate=1)
    talker = Talker(broker)
    assert talker.ask(version, creating("a", partitions=12)).throttle_time_ms == (0 if is_refused else 1000)
    made = talker.ask(version, creating("b", partitions=12))
    assert (made.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED) == is_refused
    assert made.throttle_time_ms == (1000 if is_refused else 13_000)
    assert ("b" in broker.cluster.topics) != is_refused


@pytest.mark.parametrize(("version", "is_refused"), [(4, False), (5, True), (6, True)])
def test_from_which_version_deletions_are_refused(broker: Broker, version: int, is_refused: bool) -> None:
    create(broker, "many", 12)
    set_quota(broker, ("user", None), controller_mutation_rate=1)
    talker = Talker(broker)
    for name, expected in (("many", 0 if is_refused else 1000), ("t", 1000 if is_refused else 2000)):
        topics = (DeleteTopicState(name=name),)
        request = DeleteTopicsRequest(topic_names=(name,), topics=topics, timeout_ms=1000)
        response = talker.ask(version, request)
        assert response.throttle_time_ms == expected
    assert (response.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED) == is_refused
    assert ("t" in broker.cluster.topics) == is_refused


@pytest.mark.parametrize(("version", "is_refused"), [(2, False), (3, True)])
def test_from_which_version_partitions_are_refused(broker: Broker, version: int, is_refused: bool) -> None:
    set_quota(broker, ("user", None), controller_mutation_rate=1)
    talker = Talker(broker)
    for count, expected in ((13, 0 if is_refused else 1000), (14, 1000 if is_refused else 2000)):
        topic = CreatePartitionsTopic(name="t", count=count, assignments=None)
        response = talker.ask(version, CreatePartitionsRequest(topics=(topic,), timeout_ms=1000))
        assert response.throttle_time_ms == expected
    assert (response.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED) == is_refused


def test_a_topic_that_is_only_checked_counts_as_in_kafka(broker: Broker) -> None:
    set_quota(broker, ("user", None), controller_mutation_rate=1)
    talker = Talker(broker)
    talker.ask(7, creating("a", partitions=12, validate_only=True))
    assert talker.ask(7, creating("a")).topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_topic_that_metadata_may_not_make_is_unknown(broker: Broker) -> None:
    set_quota(broker, ("user", None), controller_mutation_rate=1)
    talker = Talker(broker)
    talker.ask(7, creating("a", partitions=12))
    asked = MetadataRequest(topics=(MetadataRequestTopic(name="made"),), allow_auto_topic_creation=True)
    response = talker.ask(9, asked)
    assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert response.throttle_time_ms == 0


def test_brokers_share_the_mutations_alone(broker: Broker) -> None:
    set_quota(broker, ("user", None), controller_mutation_rate=1, producer_byte_rate=10)
    other = replace(broker, quotas=broker.quotas.of_another_broker())
    Talker(broker).ask(9, producing(b"x" * 1000))
    assert Talker(other).throttled(9, producing()) < 1000
    Talker(broker).ask(7, creating("a", partitions=12))
    assert Talker(other).ask(7, creating("b")).topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


# ---- who


def test_quotas_of_users(broker: Broker) -> None:
    set_quota(broker, ("user", "alice"), producer_byte_rate=10)
    assert Talker(broker, user="alice").throttled(9, producing(b"x" * 1000)) > 0
    assert Talker(broker, user="bob").throttled(9, producing(b"x" * 1000)) == 0
    assert Talker(broker, "another id", user="alice").throttled(9, producing()) > 0, "they share it"


def test_a_quota_that_is_removed_limits_nobody(broker: Broker) -> None:
    set_quota(broker, ("client-id", None), producer_byte_rate=10)
    assert broker.quotas.in_force
    set_quota(broker, ("client-id", None), producer_byte_rate=None)
    assert not broker.quotas.in_force
    assert Talker(broker).throttled(9, producing(b"x" * 1000)) == 0


def test_a_quota_of_addresses_costs_requests_nothing(broker: Broker) -> None:
    set_quota(broker, ("ip", None), connection_creation_rate=10)
    assert not broker.quotas.in_force


def test_a_client_is_told_of_once_in_the_log(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    set_quota(broker, ("client-id", "c"), producer_byte_rate=10)
    for _ in range(3):
        Talker(broker).ask(9, producing(b"x" * 1000))
    (line,) = [record.getMessage() for record in caplog.records if "throttled" in record.getMessage()]
    assert line.startswith("10.0.0.7:51000 (client_id 'c'): throttled for ")
    assert line.endswith(" ms by its producer_byte_rate")
