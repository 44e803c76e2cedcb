"""The effects of faults on a request and its connection, from bytes to bytes."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kshim.answering import error_answers as errors
from kshim.api.api_versions import ANNOUNCED
from kshim.faults.answers import FaultyAnswers
from kshim.network.dispatch import API
from kshim.network.replies import MAX_IN_FLIGHT
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.heartbeat import HeartbeatResponse
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.registry import VERSIONS
from tests.api.harness import batch, create
from tests.faults.carried_errors import carried
from tests.faults.world import World, one_of_each

SIZE_BYTES = 4
OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.fixture
def world() -> World:
    return World()


def produce(topic: str, acks: int = -1) -> ProduceRequest:
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(records=batch()),))
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=(data,))


def versions(peer: Any) -> int:
    """Send a request that is answered at once; return its size."""
    return peer.send(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0)


# ---- errors


@pytest.mark.parametrize("api_key", sorted(ANNOUNCED), ids=lambda key: key.title)
def test_any_api_is_answered_with_the_error_and_not_performed(
    world: World, api_key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    def perform(*_: object) -> None:
        raise AssertionError("performed")

    monkeypatch.setitem(API[api_key].__dict__, "function", perform)
    world.add(api=api_key.title, error="KAFKA_STORAGE_ERROR")
    peer = world.connect()
    for version in VERSIONS[api_key]:
        peer.send(api_key, one_of_each(api_key, version), version)
        ((_, response),) = peer.received()
        place = errors.refusal(api_key, version, ErrorCode.KAFKA_STORAGE_ERROR).place
        assert carried(response, place) == [ErrorCode.KAFKA_STORAGE_ERROR], version
    assert not peer.is_closed
    assert world.counts() == (len(VERSIONS[api_key]),) * 2


def test_an_error_for_a_produce_that_wants_no_answer_closes_its_connection(world: World) -> None:
    create(world.broker, "t")
    world.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER")
    peer = world.connect()
    peer.send(ApiKey.PRODUCE, produce("t", acks=0), 9)
    assert peer.is_closed
    assert world.broker.log.offsets(0).log_end_offset == 0


def fetch(*topics: str, session: tuple[int, int] = (0, 0), offset: int = 0) -> FetchRequest:
    return FetchRequest(
        session_id=session[0],
        session_epoch=session[1],
        topics=tuple(
            FetchTopic(
                topic=name, partitions=(FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20),)
            )
            for name in topics
        ),
    )


def fetched(response: Any) -> dict[str, tuple[int, bool]]:
    """The error of each topic, and whether there are records."""
    return {
        topic.topic: (data.error_code, bool(data.records))
        for topic in response.responses
        for data in topic.partitions
    }


def test_a_fetch_in_a_session_is_known_by_the_topics_of_its_session(world: World) -> None:
    """The request names no topic. The session goes on behind the error, and reports that it is over."""
    for topic in ("t", "u"):
        create(world.broker, topic)
    peer = world.connect()
    peer.send(ApiKey.PRODUCE, produce("t"), 9)
    peer.send(ApiKey.FETCH, fetch("t", "u"), 12)
    (_, (_, first)) = peer.received()
    assert fetched(first) == {"t": (0, True), "u": (0, False)}

    def again(epoch: int, *topics: str) -> Any:
        peer.send(ApiKey.FETCH, fetch(*topics, session=(first.session_id, epoch), offset=1), 12)
        ((_, response),) = peer.received()
        assert (response.error_code, response.session_id) == (0, first.session_id)
        return fetched(response)

    assert again(1, "t") == {}, "it has all there is"
    world.add(api="Fetch", topic="t", error="OFFSET_OUT_OF_RANGE", once=True)
    assert again(2) == {"t": (OUT_OF_RANGE, False)}
    assert again(3) == {"t": (0, False)}
    assert again(4) == {}


def test_a_fetch_without_a_session_is_told_of_all_its_topics(world: World) -> None:
    for topic in ("t", "u"):
        create(world.broker, topic)
    world.add(api="Fetch", topic="t", error="OFFSET_OUT_OF_RANGE")
    peer = world.connect()
    peer.send(ApiKey.FETCH, fetch("t", "u"), 12)
    ((_, response),) = peer.received()
    assert fetched(response) == {"t": (OUT_OF_RANGE, False), "u": (0, False)}


def test_a_fetch_by_topic_id_is_known_by_the_topic_s_name(world: World) -> None:
    topic = create(world.broker, "t")
    world.add(api="Fetch", topic="t", error="OFFSET_OUT_OF_RANGE")
    peer = world.connect()
    wanted = FetchTopic(topic_id=topic.topic_id, partitions=(FetchPartition(),))
    peer.send(ApiKey.FETCH, FetchRequest(topics=(wanted,)), 13)
    ((_, response),) = peer.received()
    assert [data.error_code for each in response.responses for data in each.partitions] == [OUT_OF_RANGE]


def metadata(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))


def test_metadata_with_an_error_names_the_brokers_and_leaves_other_topics_alone(world: World) -> None:
    create(world.broker, "u")
    world.add(api="Metadata", topic="t", error="LEADER_NOT_AVAILABLE")
    peer = world.connect()
    peer.send(ApiKey.METADATA, metadata("t", "u"))
    ((_, response),) = peer.received()
    assert len(response.brokers) == 1
    found = {topic.name: (topic.error_code, len(topic.partitions)) for topic in response.topics}
    assert found == {"t": (ErrorCode.LEADER_NOT_AVAILABLE, 0), "u": (0, 1)}
    assert "t" not in world.broker.cluster.topics, "the request for t was performed"


def test_metadata_of_all_topics(world: World) -> None:
    for topic in ("t", "u"):
        create(world.broker, topic)
    number = world.add(api="Metadata", topic="t", error="LEADER_NOT_AVAILABLE")
    peer = world.connect()
    peer.send(ApiKey.METADATA, MetadataRequest(topics=None))
    assert world.counts() == (0, 0), "it names no topic"
    world.steering.remove(number)
    world.add(api="Metadata", error="LEADER_NOT_AVAILABLE")
    peer.received()
    for version, everything in ((0, ()), (1, None)):
        peer.send(ApiKey.METADATA, MetadataRequest(topics=everything), version)
        ((_, response),) = peer.received()
        found = {topic.name: topic.error_code for topic in response.topics}
        assert found.items() >= dict.fromkeys(("t", "u"), ErrorCode.LEADER_NOT_AVAILABLE).items()


def test_a_transaction_s_coordinator_is_no_group(world: World) -> None:
    world.add(api="FindCoordinator", group="g", error="COORDINATOR_NOT_AVAILABLE")
    peer = world.connect()
    for key_type, error in ((0, ErrorCode.COORDINATOR_NOT_AVAILABLE), (1, ErrorCode.NONE)):
        request = FindCoordinatorRequest(coordinator_keys=("g",), key_type=key_type)
        peer.send(ApiKey.FIND_COORDINATOR, request)
        ((_, response),) = peer.received()
        assert response.coordinators[0].error_code == error


def test_a_request_for_nothing_is_answered_as_ever(world: World) -> None:
    world.add(api="Metadata", error="LEADER_NOT_AVAILABLE")
    peer = world.connect()
    peer.send(ApiKey.METADATA, metadata())
    ((_, response),) = peer.received()
    assert (response.error_code, response.topics) == (0, ())
    assert world.counts() == (0, 0)


# ---- late answers


def test_a_delayed_request_is_performed_at_once_and_answered_late(world: World) -> None:
    world.add(api="CreateTopics", delay_ms=500)
    peer = world.connect()
    peer.create("t")
    assert "t" in world.broker.cluster.topics
    world.advance(499)
    assert peer.received() == []
    world.advance(1)
    ((number, response),) = peer.received()
    assert (number, response.topics[0].error_code) == (0, 0)


def test_answers_keep_their_order_behind_a_delayed_one(world: World) -> None:
    world.add(api="CreateTopics", delay_ms=500, once=True)
    peer, other = world.connect(), world.connect()
    peer.create("t")
    for each in (peer, other):
        versions(each)
    assert [number for number, _ in other.received()] == [0], "another connection waits"
    assert peer.received() == []
    world.advance(500)
    assert [number for number, _ in peer.received()] == [0, 1]


def test_delayed_answers_are_bounded_and_counted(world: World) -> None:
    world.add(delay_ms=500)
    peer = world.connect()
    before = world.broker.unread.bytes
    for _ in range(MAX_IN_FLIGHT + 5):
        versions(peer)
    assert world.counts() == (MAX_IN_FLIGHT, MAX_IN_FLIGHT), "no more are read"
    answers = 200 * MAX_IN_FLIGHT
    assert world.broker.unread.bytes > before + answers
    world.advance(500)
    world.advance(500)
    assert len(peer.received()) == MAX_IN_FLIGHT + 5
    assert world.broker.unread.bytes == before


def test_the_client_goes_while_its_answer_is_delayed(world: World) -> None:
    world.add(delay_ms=500)
    peer = world.connect()
    before = world.broker.unread.bytes
    versions(peer)
    peer.lose()
    world.advance(500)
    assert peer.received() == []
    assert world.broker.unread.bytes == before


def test_a_promised_answer_is_delayed_from_when_it_comes(world: World) -> None:
    """A Heartbeat that is parked."""
    world.add(api="Heartbeat", group="g", delay_ms=500)
    peer = world.connect()
    peer.beat()
    world.advance(2000)
    world.groups.promises[0].answer_alone(HeartbeatResponse(error_code=27))
    assert peer.received() == []
    world.advance(500)
    ((_, response),) = peer.received()
    assert response.error_code == 27


def test_a_fetch_is_delayed_with_its_records(world: World) -> None:
    """Its answer is in pieces, and their memory is not its own."""
    create(world.broker, "t")
    world.add(api="Fetch", delay_ms=500)
    peer = world.connect()
    peer.send(ApiKey.PRODUCE, produce("t"), 9)
    peer.send(ApiKey.FETCH, fetch("t"), 12)
    assert [number for number, _ in peer.received()] == [0]
    world.advance(500)
    ((_, response),) = peer.received()
    assert fetched(response) == {"t": (0, True)}


def test_a_produce_that_wants_no_answer_has_none_to_be_late(world: World) -> None:
    create(world.broker, "t")
    for action in ({"delay_ms": 500}, {"drop": True}):
        world.add(api="Produce", **action, once=True)
    peer = world.connect()
    for _ in range(2):
        peer.send(ApiKey.PRODUCE, produce("t", acks=0), 9)
    versions(peer)
    assert [number for number, _ in peer.received()] == [2]
    assert [world.counts(number) for number in (1, 2)] == [(1, 1), (1, 1)]


# ---- no answer


def test_a_dropped_answer_never_comes_and_none_behind_it(world: World) -> None:
    """A client that saw a later answer first would lose its place; it has to connect again."""
    world.add(api="CreateTopics", drop=True)
    peer = world.connect()
    peer.create("t")
    versions(peer)
    world.advance(3_600_000)
    assert "t" in world.broker.cluster.topics
    assert peer.received() == []
    assert not peer.is_closed
    again = world.connect()
    versions(again)
    assert len(again.received()) == 1


def test_a_dropped_promise(world: World) -> None:
    world.add(api="Heartbeat", drop=True)
    peer = world.connect()
    peer.beat()
    world.groups.promises[0].answer_alone(HeartbeatResponse())
    assert peer.received() == []


@pytest.mark.parametrize(("close", "performed"), [("before", False), ("after", True)])
def test_a_connection_is_closed_before_or_after(world: World, close: str, performed: bool) -> None:
    world.add(api="CreateTopics", close=close)
    peer = world.connect()
    versions(peer)
    peer.create("t")
    assert [number for number, _ in peer.received()] == [0], "the answers before it are sent"
    assert peer.is_closed
    assert ("t" in world.broker.cluster.topics) is performed


def test_a_connection_is_closed_when_a_promise_is_kept(world: World) -> None:
    world.add(api="Heartbeat", close="after")
    peer = world.connect()
    peer.beat()
    assert not peer.is_closed
    world.groups.promises[0].answer_alone(HeartbeatResponse())
    assert peer.is_closed
    assert peer.received() == []


# ---- slow connections


def test_a_stalled_connection_reads_nothing_and_then_goes_on(world: World) -> None:
    world.add(api="CreateTopics", stall_ms=1000, once=True)
    peer = world.connect()
    peer.create("t")
    peer.create("u")
    world.advance(999)
    assert not peer.transport.reads
    assert not {"t", "u"} & world.broker.cluster.topics.keys()
    assert peer.received() == []
    world.advance(1)
    assert world.broker.cluster.topics.keys() >= {"t", "u"}
    assert [number for number, _ in peer.received()] == [0, 1]
    assert peer.transport.reads


def test_a_stalled_fetch_is_not_parked_as_well(world: World) -> None:
    """Nothing behind it would be read as long as it is."""
    world.add(api="Fetch", stall_ms=1000)
    create(world.broker, "t")
    peer = world.connect()
    waits = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=fetch("t").topics)
    peer.send(ApiKey.FETCH, waits, 12)
    world.advance(1000)
    assert len(peer.received()) == 1


def test_the_request_of_a_client_that_has_gone_is_not_performed(world: World) -> None:
    world.add(stall_ms=1000)
    peer = world.connect()
    peer.create("t")
    peer.lose()
    world.advance(1000)
    assert "t" not in world.broker.cluster.topics


def test_a_slow_connection_takes_time_for_each_byte(world: World) -> None:
    peer, other = world.connect(), world.connect()
    versions(other)
    reply_bytes = len(other.transport.value()) - SIZE_BYTES
    world.add(api="ApiVersions", bytes_per_s=1000)
    request_bytes = versions(peer)
    versions(peer)
    for number in (0, 1):
        assert world.counts() == (number + 1, number + 1), "the second is read when the first is answered"
        world.advance(request_bytes)
        world.advance(reply_bytes - 1)
        assert peer.received() == []
        world.advance(1.001)  # the times of many bytes do not add up exactly
        assert [answered for answered, _ in peer.received()] == [number]


# ---- who is struck, who is told


def test_only_the_chosen_requests_are_struck(world: World) -> None:
    world.add(api="Heartbeat", group="g", member="m", client_id="c", error="NOT_COORDINATOR")
    here, there = world.connect("c"), world.connect("d")
    here.beat("g", "m")
    for group, member in (("h", "m"), ("g", "n")):
        here.beat(group, member)
    there.beat("g", "m")
    assert [response.error_code for _, response in here.received()] == [ErrorCode.NOT_COORDINATOR]
    assert len(world.groups.asked) == 3
    assert world.counts() == (1, 1)


def test_each_strike_is_told_and_the_first_is_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world.add(api="Heartbeat", error="NOT_COORDINATOR", times=2)
    peer = world.connect()
    for _ in range(2):
        peer.beat()
    line = "fault 1 (error NOT_COORDINATOR) strikes Heartbeat v4 of 10.0.0.7:51000 (client_id 'c')"
    assert [str(struck) for struck in world.told] == [line, line]
    assert [struck.times for struck in world.told] == [1, 2]
    assert {(struck.kind, struck.group_id) for struck in world.told} == {("fault", "g")}
    logged = [record.levelno for record in caplog.records if record.getMessage() == line]
    assert logged == [logging.INFO, logging.DEBUG]


def test_a_request_that_cannot_be_read_closes_its_connection_as_ever(world: World) -> None:
    world.add(error="NOT_COORDINATOR")
    peer = world.connect()
    peer.protocol.dataReceived(bytes.fromhex("0000000a 000cffff 00000001 0000"))
    assert peer.is_closed


def test_a_request_with_many_elements_is_struck_too(world: World) -> None:
    world.add(api="Metadata", error="LEADER_NOT_AVAILABLE")
    peer = world.connect()
    peer.send(ApiKey.METADATA, metadata(*(f"t{number}" for number in range(3000))))
    ((_, response),) = peer.received()
    assert {topic.error_code for topic in response.topics} == {ErrorCode.LEADER_NOT_AVAILABLE}
    assert len(response.topics) == 3000


# ---- no faults


def test_without_faults_nothing_of_this_takes_part(world: World) -> None:
    def is_faulty() -> bool:
        used: Any = world.shared.answer
        found = isinstance(used.func, FaultyAnswers)
        assert world.need_whole is found
        return found

    first, second = world.add(drop=True), world.add(drop=True, group="g")
    assert is_faulty()
    world.steering.remove(first)
    assert is_faulty()
    world.steering.remove(second)
    assert not is_faulty()
    assert world.shared.answer.func is world.plain.func
    assert world.shared.answer.args == world.plain.args
    world.add(drop=True)
    world.steering.remove_all()
    assert not is_faulty()
    world.add(api="ApiVersions", error="INVALID_REQUEST", times=2)
    peer = world.connect()
    versions(peer)
    assert is_faulty()
    versions(peer)
    assert not is_faulty(), "it is used up"
    world.add(drop=True, for_ms=1000)
    world.advance(999)
    assert is_faulty()
    world.advance(1)
    assert not is_faulty(), "its time is over"
    assert [each["is_in_force"] for each in world.steering.describe()] == [False, False]
