"""`upstream.groups.protocols=classic`: groups of the consumer protocol are the upstream's, others kshim's."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.callers import Refused
from kshim.configs.endpoint import Endpoint
from kshim.upstream.elsewhere import other_side
from kshim.upstream.here import own_context
from kshim.upstream.moving_in import commit_request
from kshim.upstream.there import GroupThere
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from schemas.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
)
from schemas.registry import decode_request, decode_response, encode_response
from tests.api.harness import PENDING, advance, later, result
from tests.upstream.front_world import TOPIC_ID, World, commit, join
from tests.upstream.kafka_groups import Group

HEARTBEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
THERE, HERE_OFFSET = 41, 5
"""HERE_OFFSET is that of `commit`."""


class Passing(World):
    """kshim serves classic groups alone. The upstream's coordinators take every member."""

    def __init__(self, **config: Any) -> None:
        config = {"upstream_groups_protocols": "classic", "adopts": True} | config
        super().__init__(**config)
        self.upstream_topics["t"] = TOPIC_ID
        self.passed: list[int] = []
        """The API keys of the requests that were passed on."""
        self.kafka.frames = self._answer

    def _answer(self, _: Endpoint, frame: bytes) -> bytes:
        header, request = decode_request(frame)
        self.passed.append(header.api_key)
        if header.api_key == HEARTBEAT:
            group = self.kafka.groups.setdefault(request.group_id, Group())
            group.type, group.state = "consumer", "Stable" if request.member_epoch >= 0 else "Empty"
            response: Any = ConsumerGroupHeartbeatResponse(member_epoch=request.member_epoch + 1)
            return encode_response(header.api_key, header.api_version, header.correlation_id, response)
        return frame

    def settled(self, answer: Any) -> bytes:
        found = later(answer)
        for _ in range(60):
            advance(self.here)
        reply = result(found)
        assert reply is not PENDING
        return bytes(reply)

    def request(self, key: ApiKey, version: int, request: Any) -> Any:
        return decode_response(key, version, self.settled(self.send(key, version, request)))[1]

    def beat(self, epoch: int = 0, group_id: str = "g") -> ErrorCode:
        """The answer to a member of the consumer protocol."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id="m",
            member_epoch=epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=("t",),
            topic_partitions=(),
        )
        return ErrorCode(self.request(HEARTBEAT, 1, request).error_code)

    def join_classic(self, group_id: str = "g") -> ErrorCode:
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        )
        return ErrorCode(self.request(ApiKey.JOIN_GROUP, 4, request).error_code)

    def commit(self, group_id: str = "g", epoch: int = 3) -> None:
        partition = OffsetCommitRequestPartition(committed_offset=9)
        request = OffsetCommitRequest(
            group_id=group_id,
            member_id="m",
            generation_id_or_member_epoch=epoch,
            topics=(OffsetCommitRequestTopic(name="t", topic_id=TOPIC_ID, partitions=(partition,)),),
        )
        self.settled(self.send(ApiKey.OFFSET_COMMIT, 9, request))

    def offset_there(self) -> int:
        return self.kafka.groups["g"].offsets["t", 0][0]


@pytest.fixture
def world() -> Passing:
    return Passing()


def test_a_member_and_its_offsets_go_to_the_upstream(world: Passing) -> None:
    assert world.beat() is ErrorCode.NONE
    assert world.beat(1) is ErrorCode.NONE
    world.commit()
    assert world.passed == [HEARTBEAT, HEARTBEAT, ApiKey.OFFSET_COMMIT]
    assert world.groups.see("g") is None
    assert commit(world, 9, "other") == ErrorCode.NONE
    assert world.groups.see("other") is not None, "a group that neither side had is kshim's"


def test_the_offsets_of_a_group_are_the_upstream_s_after_a_start(world: Passing) -> None:
    """kshim has not seen a heartbeat yet."""
    world.kafka.groups["g"] = Group("Stable", "consumer")
    world.commit()
    assert world.passed == [ApiKey.OFFSET_COMMIT]
    world.kafka.groups["empty"] = Group("Empty", "consumer")
    world.commit("empty", epoch=-1)
    assert world.passed == [ApiKey.OFFSET_COMMIT] * 2
    assert not world.groups.group_ids()


def test_offsets_wait_while_nobody_knows_whose_they_are(world: Passing) -> None:
    world.kafka.is_down = True
    with pytest.raises(Refused, match="names a group of which the upstream does not say what it is"):
        world.commit()
    assert world.groups.see("g") is None


def test_a_group_goes_over_with_its_offsets(world: Passing, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert commit(world, 9) == ErrorCode.NONE
    assert world.beat() is ErrorCode.NONE
    assert world.groups.see("g") is None
    assert world.offset_there() == HERE_OFFSET
    (line,) = [each for each in caplog.messages if "goes over to the upstream" in each]
    assert line.startswith("group g ")
    assert line.endswith("it goes on there with 1 offsets")
    world.commit()
    assert world.passed == [HEARTBEAT, ApiKey.OFFSET_COMMIT]


def test_a_group_does_not_go_over_while_the_upstream_does_not_take_its_offsets(world: Passing) -> None:
    assert commit(world, 9) == ErrorCode.NONE
    for fault in ("is_down", "error"):
        setattr(world.kafka, fault, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert world.beat().retriable
        assert world.groups.see("g") is not None
        setattr(world.kafka, fault, ErrorCode.NONE)
    assert not world.passed
    assert world.beat() is ErrorCode.NONE
    assert world.offset_there() == HERE_OFFSET


def test_an_offset_that_is_committed_meanwhile_goes_over_too(world: Passing) -> None:
    assert commit(world, 9) == ErrorCode.NONE
    later = OffsetFetchResponsePartitions(partition_index=0, committed_offset=THERE, metadata="")

    def commits(request: Any) -> Any:
        world.kafka._commit = taken  # type: ignore[method-assign]
        world.groups.submit(own_context(), commit_request("g", {("t", 0): later}))
        return taken(request)

    taken = world.kafka._commit
    world.kafka._commit = commits  # type: ignore[method-assign]
    assert world.beat().retriable
    assert world.groups.see("g") is not None
    assert not world.passed
    assert world.beat() is ErrorCode.NONE
    assert world.offset_there() == THERE


def test_a_newer_offset_of_the_upstream_stays() -> None:
    world = Passing()
    world.kafka.groups["g"] = Group(offsets={("t", 1): (THERE, -1, "")})
    assert commit(world, 9) == ErrorCode.NONE
    assert world.beat() is ErrorCode.NONE
    assert world.kafka.groups["g"].offsets == {("t", 0): (HERE_OFFSET, -1, ""), ("t", 1): (THERE, -1, "")}


def test_a_group_with_classic_members_stays(world: Passing, caplog: pytest.LogCaptureFixture) -> None:
    join(world, "g")
    assert world.beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert world.beat(3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert not world.passed
    group = world.groups.see("g")
    assert group is not None
    assert len(group.members) == 1
    (line,) = [each for each in caplog.messages if "stop the former first" in each]
    assert line.startswith("group g has members of the classic protocol here")


def test_a_classic_member_does_not_join_beside_members_there(
    world: Passing, caplog: pytest.LogCaptureFixture
) -> None:
    assert world.beat() is ErrorCode.NONE
    assert world.join_classic() is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.groups.see("g") is None
    (line,) = [each for each in caplog.messages if "stop the former first" in each]
    assert line.startswith("group g has members of the consumer protocol at the upstream")
    world.kafka.error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.join_classic().retriable, "nobody knows"


def test_a_classic_member_waits_if_another_one_goes_to_the_upstream_meanwhile(world: Passing) -> None:
    world.kafka.groups["g"] = Group(offsets={("t", 0): (THERE, -1, "")})
    adopt = world.moving_in.adopt

    async def adopts(group_id: str, offsets: Any) -> None:
        world.sides.theirs.note(group_id)
        await adopt(group_id, offsets)

    world.moving_in.adopt = adopts  # type: ignore[method-assign]
    assert world.join_classic() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    group = world.groups.see("g")
    assert group is not None
    assert not group.members


def test_a_group_comes_back_with_its_offsets(world: Passing) -> None:
    assert world.join_classic() is ErrorCode.MEMBER_ID_REQUIRED
    assert world.beat() is ErrorCode.NONE
    world.kafka.groups["g"].offsets["t", 0] = (THERE, -1, "")
    assert world.beat(-1) is ErrorCode.NONE
    assert world.join_classic() is ErrorCode.MEMBER_ID_REQUIRED
    group = world.groups.see("g")
    assert group is not None
    assert group.committed["t", 0].offset == THERE


def test_nobody_joins_at_a_kshim_that_does_not_coordinate_the_group(world: Passing) -> None:
    """It does not know if the group is kshim's."""
    world.groups.unload(world.groups.shard_for("g"))
    assert world.beat() is ErrorCode.NOT_COORDINATOR
    assert not world.passed
    assert world.beat(3) is ErrorCode.NONE, "a member that has joined goes on"
    world.commit()
    assert world.passed == [HEARTBEAT], "its commit goes to the kshim that knows"


def test_members_that_kshim_has_served_join_again() -> None:
    before = Passing(upstream_groups_protocols="classic,consumer")
    assert before.beat() is ErrorCode.NONE
    assert commit(before, 9) == ErrorCode.UNKNOWN_MEMBER_ID
    before.groups.stop()
    world = Passing(before=before)
    world.lead()
    for _ in range(20):
        advance(world.here)
    assert world.beat(1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat() is ErrorCode.NONE
    assert world.passed == [HEARTBEAT]
    assert world.groups.see("g") is None


def test_offsets_of_several_groups_come_from_both_sides(world: Passing) -> None:
    world.kafka.groups["g"] = Group("Empty", "consumer", {("t", 0): (THERE, 2, "there")})
    assert commit(world, 9, "ours") == ErrorCode.NONE
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1)),)
    request = OffsetFetchRequest(
        groups=tuple(OffsetFetchRequestGroup(group_id=each, topics=topics) for each in ("g", "ours"))
    )
    found = {
        group.group_id: [each.committed_offset for each in group.topics[0].partitions]
        for group in world.request(ApiKey.OFFSET_FETCH, 9, request).groups
    }
    assert found == {"g": [THERE, -1], "ours": [HERE_OFFSET, -1]}


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS])
def test_a_transaction_gets_a_group_at_both_sides(world: Passing, error: ErrorCode) -> None:
    """The kshim at the port of the transaction's coordinator does not know which side has the group."""
    request = AddOffsetsToTxnRequest(transactional_id="t", group_id="g")
    answer = later(world.send(ApiKey.ADD_OFFSETS_TO_TXN, 3, request))
    partition = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=error)
    topic = AddPartitionsToTxnTopicResult(name="groups", results_by_partition=(partition,))
    added = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=(topic,))
    world.passage.promise.answer_alone(encode_response(ApiKey.ADD_PARTITIONS_TO_TXN, 3, 7, added))
    sent = [int.from_bytes(each[:2]) for each in world.passage.sent]
    if error:
        assert sent == [ApiKey.ADD_PARTITIONS_TO_TXN]
        response = decode_response(ApiKey.ADD_OFFSETS_TO_TXN, 3, bytes(result(answer)))[1]
        assert response.error_code == error
    else:
        assert sent == [ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN]
        world.passage.promise.answer_alone(b"the upstream's answer")
        assert result(answer) == b"the upstream's answer"


def test_the_versions_of_the_protocol_are_the_upstream_s(world: Passing) -> None:
    def told(*served: ApiVersion) -> list[int]:
        response = ApiVersionsResponse(api_keys=served)
        found = world.forwarded(ApiKey.API_VERSIONS, 3, named, response).api_keys
        return [each.max_version for each in found if each.api_key == HEARTBEAT]

    named = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    assert told(ApiVersion(api_key=HEARTBEAT, max_version=0)) == [0]
    assert told() == []


def test_why_says_that_the_group_is_passed_on() -> None:
    there = GroupThere("g", "Stable", is_consumer=True)
    assert "kshim passes them on" in other_side(there, is_known=False, passes_consumers=True)
    assert "kshim adopt g" in other_side(there, is_known=False)
