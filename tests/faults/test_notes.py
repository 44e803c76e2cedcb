"""Notes of requests, taken beneath the faults."""

from __future__ import annotations

from kshim.control.commands import run
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.heartbeat import HeartbeatResponse
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.api.harness import batch
from tests.faults.world import World


def produce(topic: str) -> ProduceRequest:
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(records=batch()),))
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(data,))


def noted(world: World, after: int = 0) -> list[dict[str, object]]:
    answer = run(world.steering.commands(), "noted-requests", [after])
    assert isinstance(answer, dict)
    return list(answer["notes"])


def test_what_was_fetched_is_noted_by_name() -> None:
    world = World()
    run(world.steering.commands(), "note-requests", [])
    peer = world.connect("reader")
    peer.create("t")
    peer.send(ApiKey.PRODUCE, produce("t"), 8)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = (FetchTopic(topic="t", partitions=(partition,)),)
    peer.send(ApiKey.FETCH, FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 11)
    (note,) = noted(world)
    assert (note["what"], note["topic"], note["partition"], note["first"]) == ("fetched", "t", 0, 0)
    assert (note["listener"], note["client"]) == ("PLAINTEXT", "reader")
    assert str(note["address"]).rpartition(":")[2].isdecimal()
    assert noted(world, 1) == []


def test_a_heartbeat_is_noted_if_it_fails_and_an_answer_that_comes_later_is_as_it_was() -> None:
    world = World()
    run(world.steering.commands(), "note-requests", [])
    peer = world.connect()
    for error in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
        peer.beat()
        world.groups.promises[-1].answer_alone(HeartbeatResponse(error_code=error))
    assert [answer.error_code for _, answer in peer.received()] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    (note,) = noted(world)
    assert (note["what"], note["member"], note["error"]) == ("heartbeat", "m", "UNKNOWN_MEMBER_ID")


def test_a_member_that_waits_for_others_to_join_is_noted_before_its_answer() -> None:
    world = World()
    run(world.steering.commands(), "note-requests", [])
    peer = world.connect()
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        member_id="",
        group_instance_id="static-1",
        protocol_type="consumer",
        protocols=protocols,
    )
    peer.send(ApiKey.JOIN_GROUP, request, 5)
    (note,) = noted(world)
    assert (note["what"], note["member"], note["instance"]) == ("joins", "", "static-1")
    world.groups.promises[-1].answer_alone(JoinGroupResponse(error_code=ErrorCode.NONE, member_id="m"))
    assert [each["what"] for each in noted(world)] == ["joins", "joined"]


def test_a_request_whose_answer_a_fault_takes_away_is_noted() -> None:
    world = World()
    run(world.steering.commands(), "note-requests", [])
    world.add(api="Heartbeat", close="after")
    peer = world.connect()
    peer.beat()
    world.groups.promises[-1].answer_alone(HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION))
    assert peer.is_closed
    assert len(noted(world)) == 1


def test_faults_come_and_go_and_notes_stay() -> None:
    world = World()
    number = world.add(api="Heartbeat", error="NOT_COORDINATOR", once=True)
    run(world.steering.commands(), "note-requests", [])
    peer = world.connect()
    for _ in range(2):
        peer.beat()
    world.groups.promises[-1].answer_alone(HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION))
    assert [answer.error_code for _, answer in peer.received()] == [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.ILLEGAL_GENERATION,
    ]
    assert len(noted(world)) == 1
    assert world.counts(number) == (1, 1)
