"""Offsets, descriptions, lists and deletion of consumer groups; cases 156 to 168."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.coordination.groups.consumer.member import MemberState
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup
from schemas.error_code import ErrorCode
from schemas.internal_topics.consumer_group_log import ClassicMemberMetadata
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordination.groups.consumer.commits import commit
from tests.coordination.groups.consumer.world import BAR, FOO, G, Given, World, held, stable, target

CLASSIC = ClassicMemberMetadata(session_timeout_ms=10_000)
STALE, ILLEGAL = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
DAY_MS = 24 * 60 * 60_000


def running() -> World:
    """A group at epoch 10: member m has foo 0 since epoch 8 and foo 1 since 10; member c is a classic one."""
    assigned = {FOO: {0: 8, 1: 10}}
    m = stable("m", 10, ("foo",), assigned, revoking=held(7, bar=(0,)), state=MemberState.STABLE)
    c = stable("c", 10, ("foo",), held(9, foo=(2,)), classic=CLASSIC)
    return World(Given(10, [(m, target(foo=(0, 1))), (c, target(foo=(2,)))]))


def empty() -> World:
    return World(Given(10))


def txn_commit(
    world: World, member_id: str, epoch: int, instance_id: str | None = None, version: int = 5
) -> Any:
    request = TxnOffsetCommitRequest(
        group_id=G,
        transactional_id="t",
        producer_id=1,
        producer_epoch=0,
        member_id=member_id,
        group_instance_id=instance_id,
        generation_id_or_member_epoch=epoch,
        topics=(
            TxnOffsetCommitRequestTopic(
                name="foo",
                partitions=(TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5),),
            ),
        ),
    )
    return ErrorCode(world.ask(request, version).topics[0].partitions[0].error_code)


def fetch(world: World, member_id: str | None, epoch: int) -> Any:
    topics = (OffsetFetchRequestTopics(name="foo", partition_indexes=(0,)),)
    answer = world.ask(
        OffsetFetchRequestGroup(group_id=G, member_id=member_id, member_epoch=epoch, topics=topics), 9
    )
    if answer.error_code:
        return ErrorCode(answer.error_code)
    return answer.topics[0].partitions[0].committed_offset


class TestCommits:
    def test_156_a_member_in_its_epoch(self) -> None:
        world = running()
        assert commit(world, "m", 10, indexes=(0, 5)) == ErrorCode.NONE
        assert fetch(world, None, -1) == 5
        assert commit(world, "c", 10) == ErrorCode.NONE

    def test_156_nobody_in_particular(self) -> None:
        assert commit(running(), "", -1) == UNKNOWN
        assert commit(running(), "n", 10) == UNKNOWN
        assert commit(empty(), "", -1) == ErrorCode.NONE
        assert commit(empty(), "n", -1, group_instance_id="i") == ErrorCode.NONE
        assert commit(empty(), "n", 10) == UNKNOWN

    def test_156_other_epochs(self) -> None:
        assert commit(running(), "m", 11) == STALE
        assert commit(running(), "m", 7) == STALE
        assert commit(running(), "c", 11) == ILLEGAL
        assert commit(running(), "c", 8, indexes=(2,)) == ILLEGAL

    @pytest.mark.parametrize(
        ("epoch", "topic", "indexes", "error"),
        [
            (9, "foo", (0,), ErrorCode.NONE),
            (8, "foo", (0,), ErrorCode.NONE),
            (8, "foo", (0, 1), STALE),
            (9, "foo", (2,), STALE),
            (7, "bar", (0,), ErrorCode.NONE),
            (6, "bar", (0,), STALE),
            (9, "nowhere", (0,), STALE),
        ],
    )
    def test_156_an_earlier_epoch_for_what_it_has_had_since(
        self, epoch: int, topic: str, indexes: tuple[int, ...], error: ErrorCode
    ) -> None:
        """KIP-1251."""
        assert commit(running(), "m", epoch, topic=topic, indexes=indexes) == error

    def test_156_an_instance_id_does_not_matter(self) -> None:
        assert commit(running(), "m", 10, group_instance_id="other") == ErrorCode.NONE

    def test_157_an_old_version(self) -> None:
        assert commit(running(), "m", 10, version=8) == ErrorCode.UNSUPPORTED_VERSION
        assert commit(running(), "c", 10, version=8) == ErrorCode.NONE

    def test_157_in_a_transaction(self) -> None:
        assert txn_commit(running(), "", -1) == ErrorCode.NONE
        assert txn_commit(running(), "m", 10, version=3) == ErrorCode.NONE
        assert txn_commit(running(), "", -1, "i") == UNKNOWN
        assert txn_commit(running(), "n", 10) == UNKNOWN
        assert txn_commit(running(), "m", 11, version=5) == ILLEGAL
        assert txn_commit(running(), "m", 11, version=6) == STALE
        assert txn_commit(running(), "c", 11, version=6) == ILLEGAL
        assert txn_commit(empty(), "n", -1) == ErrorCode.NONE

    def test_a_commit_does_not_make_a_classic_group(self) -> None:
        world = empty()
        commit(world, "", -1)
        assert world.coordinator._shards[0].groups == {}


class TestFetches:
    def test_158_who_may_fetch(self) -> None:
        world = running()
        commit(world, "m", 10)
        assert fetch(world, "m", 10) == 5
        assert fetch(world, None, -1) == 5
        assert fetch(world, "n", 10) == UNKNOWN
        assert fetch(world, "", 0) == UNKNOWN
        assert fetch(world, "m", 9) == STALE
        assert fetch(world, "m", 11) == STALE
        assert fetch(world, "c", 9) == ILLEGAL

    def test_158_no_member_but_an_epoch(self) -> None:
        """Apache Kafka fails with UNKNOWN_SERVER_ERROR."""
        assert fetch(running(), None, 0) == UNKNOWN


class TestDeletes:
    def delete(self, world: World, *topics: str) -> list[ErrorCode]:
        request = OffsetDeleteRequest(
            group_id=G,
            topics=tuple(
                OffsetDeleteRequestTopic(
                    name=topic, partitions=(OffsetDeleteRequestPartition(partition_index=0),)
                )
                for topic in topics
            ),
        )
        answer = world.ask(request, 0)
        assert answer.error_code == 0
        return [ErrorCode(each.partitions[0].error_code) for each in answer.topics]

    def test_159_topics_that_somebody_subscribes_to(self) -> None:
        world = running()
        commit(world, "m", 10)
        commit(world, "m", 10, topic="bar")
        assert self.delete(world, "foo", "bar") == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
        assert world.kinds() == [-1]

    @pytest.mark.parametrize("given", [Given(10), Given(11), Given(10, assignment_epoch=8)])
    def test_160_an_empty_group_is_deleted(self, given: Given) -> None:
        world = World(given)
        commit(world, "", -1)
        assert world.ask(DeleteGroup(G)).error_code == 0
        assert world.kinds() == [-1, -6, -4, -3]
        assert world.groups() == {}
        assert world.ask(DeleteGroup(G)).error_code == ErrorCode.GROUP_ID_NOT_FOUND

    def test_160_all_that_a_group_has(self) -> None:
        world = World()
        world.join("m", "bar", subscribed_topic_regex="fo+")
        world.advance()
        shard = world.coordinator._shards[0].consumer
        draft = Draft(0, world.coordinator._surroundings, world.now_ms)
        shard._writing(draft, world.group()).delete_group()
        world._note(draft.decision())
        assert world.kinds() == [-8, -7, -6, -5, -16, -4, -3]
        assert world.coordinator._shards[0].hard_state.consumer.subscribed_to("foo") == []

    def test_160_a_group_with_members_stays(self) -> None:
        world = running()
        assert world.ask(DeleteGroup(G)).error_code == ErrorCode.NON_EMPTY_GROUP
        away = World(Given(10, [(stable("m", -2, instance_id="i"), {})]))
        assert away.ask(DeleteGroup(G)).error_code == ErrorCode.NON_EMPTY_GROUP


class TestExpiry:
    def test_161_of_topics_that_nobody_subscribes_to(self) -> None:
        world = empty()
        commit(world, "", -1)
        world.advance(7 * DAY_MS - 1)
        assert world.groups().keys() == {G}
        world.advance(DAY_MS)
        assert world.kinds() == [-1, -6, -4, -3]
        assert world.groups() == {}

    def test_161_topics_of_members_stay(self) -> None:
        world = running()
        world.configs.session_ms = 100 * DAY_MS
        world.reload()
        commit(world, "m", 10)
        commit(world, "m", 10, topic="bar")
        world.advance(8 * DAY_MS)
        assert set(world.coordinator._shards[0].hard_state.offsets[G]) == {("foo", 0)}


class TestDescriptions:
    def test_162_a_group(self) -> None:
        described = running().ask(DescribeConsumerGroup(G))
        assert (described.group_state, described.group_epoch, described.assignment_epoch) == (
            "Stable",
            10,
            10,
        )
        assert described.assignor_name == "uniform"
        assert [(each.member_id, each.member_type, each.member_epoch) for each in described.members] == [
            ("m", 1, 10),
            ("c", 0, 10),
        ]
        assert described.members[0].client_host == "/host"

    def test_166_a_member_that_goes_over_to_the_consumer_protocol(self) -> None:
        world = running()
        assert [each.member_type for each in world.ask(DescribeConsumerGroup(G)).members] == [1, 0]
        world.join("c", "foo")
        assert [each.member_type for each in world.ask(DescribeConsumerGroup(G)).members] == [1, 1]

    def test_163_no_such_group(self) -> None:
        described = World().ask(DescribeConsumerGroup("x"))
        assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert (described.error_message, described.group_state) == ("Group x not found.", "")

    def test_163_another_kind_of_group(self) -> None:
        world = World()
        commit(world, "", -1)
        assert world.ask(DescribeConsumerGroup(G)).error_message == "Group g is not a consumer group."

    def test_168_as_a_classic_group(self) -> None:
        new, old = (running().ask(DescribeGroup(G), version) for version in (6, 5))
        assert (new.error_code, new.error_message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Group g is not a classic group.",
        )
        assert (old.error_code, old.group_state, new.group_state) == (0, "Dead", "Dead")

    @pytest.mark.parametrize(
        ("types", "states", "is_listed"),
        [
            ((), (), True),
            (("Consumer",), (), True),
            (("classic",), (), False),
            (("whatever",), (), False),
            (("classic", "consumer"), (" sTABLE ",), True),
            ((), ("Empty",), False),
        ],
    )
    def test_167_lists(self, types: tuple[str, ...], states: tuple[str, ...], is_listed: bool) -> None:
        request = ListGroupsRequest(types_filter=types, states_filter=states)
        listed = running().coordinator.list_groups(request).groups
        found = [(each.group_id, each.group_type, each.protocol_type, each.group_state) for each in listed]
        assert found == [(G, "consumer", "consumer", "Stable")] * is_listed


def test_123_an_empty_classic_group_gives_way() -> None:
    """Its offsets stay."""
    world = World()
    commit(world, "", -1)
    answer = world.join("m", "foo")
    assert (answer.member_epoch, world.kinds()) == (2, [-2, 5, 3, 7, 6, 8])
    assert fetch(world, None, -1) == 5
    assert world.coordinator._shards[0].groups == {}
    world.reload()
    assert (world.coordinator._shards[0].groups, list(world.groups())) == ({}, [G])


def test_38_what_the_journal_does_not_take_is_void() -> None:
    """The shard is loaded again, and the client repeats its request."""
    world = World()
    world.join("m", "foo")
    world.journal.clear()
    world.reload()
    assert world.groups() == {}
    assert world.join("m", "foo").member_epoch == 2


def test_topics_are_named_by_id() -> None:
    """v10 of OffsetCommit names topics by id."""
    world = running()
    request = OffsetCommitRequest(
        group_id=G,
        member_id="m",
        generation_id_or_member_epoch=7,
        topics=(
            OffsetCommitRequestTopic(
                name="bar",
                topic_id=BAR,
                partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=1),),
            ),
        ),
    )
    assert world.ask(request, 10).topics[0].partitions[0].error_code == 0
