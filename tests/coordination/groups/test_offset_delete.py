"""Which of a group's offsets may be deleted on their own, and what remains."""

from __future__ import annotations

import pytest

from kshim.coordination.groups.states import State
from schemas.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import OffsetCommitKey
from schemas.messages.join_group import JoinGroupRequestProtocol
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequestGroup
from tests.coordination.groups.history import History, protocols

TOPICS = ("topic", "other")
SUBSCRIBED = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
NOT_FOUND = OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)


def subscription(*topics: str, version: int = 3) -> tuple[JoinGroupRequestProtocol, ...]:
    return protocols(
        "range", metadata=encode_subscription(ConsumerProtocolSubscription(topics=topics), version)
    )


def delete(*topics: tuple[str, tuple[int, ...]]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id="group",
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in indexes),
            )
            for name, indexes in topics
        ),
    )


def commit_all(history: History) -> None:
    """Commit partitions 0 and 1 of both topics from outside the group, which must have no members."""
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=index, committed_offset=5, committed_metadata="")
        for index in (0, 1)
    )
    topics = tuple(OffsetCommitRequestTopic(name=name, partitions=partitions) for name in TOPICS)
    history.ask(OffsetCommitRequest(group_id="group", topics=topics))


def left(history: History) -> list[tuple[str, int]]:
    answer = history.ask(OffsetFetchRequestGroup(group_id="group", topics=None))
    return [
        (topic.name, partition.partition_index) for topic in answer.topics for partition in topic.partitions
    ]


def errors(history: History) -> list[int]:
    """The errors of deleting partition 0 of both topics."""
    answer = history.ask(delete(("topic", (0,)), ("other", (0,))))
    assert answer.error_code == ErrorCode.NONE
    return [partition.error_code for topic in answer.topics for partition in topic.partitions]


class TestGroupErrors:
    def test_an_absent_group(self, history: History) -> None:
        """[147]"""
        assert history.ask(delete(("topic", (0,)))) == NOT_FOUND
        assert history.ask(delete()) == NOT_FOUND
        assert history.groups() == {}

    def test_a_dead_group(self, history: History) -> None:
        """[147]"""
        commit_all(history)
        history.group().transition_to(State.DEAD, history.now_ms)
        assert history.ask(delete(("topic", (0,)))) == NOT_FOUND

    @pytest.mark.parametrize("state", [State.STABLE, State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE])
    def test_members_of_another_type(self, history: History, state: State) -> None:
        """[147]"""
        commit_all(history)
        (client,) = history.stable(1, protocol_type="connect")
        if state is State.PREPARING_REBALANCE:
            history.client(protocol_type="connect").enter()
        elif state is State.COMPLETING_REBALANCE:
            client.join()
        assert history.group().state is state
        expected = OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP)
        assert history.ask(delete(("topic", (0,)))) == expected
        assert len(left(history)) == 4

    def test_the_group_with_the_empty_id(self, history: History) -> None:
        """[147]"""
        history.client(group_id="").commit(7)
        answer = history.ask(OffsetDeleteRequest(group_id=""))
        assert answer == OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)


class TestWithoutMembers:
    def test_what_is_named_is_deleted_and_the_group_stays(self, history: History) -> None:
        """[146]"""
        commit_all(history)
        records = len(history.journal)
        assert history.ask(delete(("topic", (1, 9)), ("none", (0,)))) == OffsetDeleteResponse(
            topics=(
                OffsetDeleteResponseTopic(
                    name="topic",
                    partitions=(
                        OffsetDeleteResponsePartition(partition_index=1),
                        OffsetDeleteResponsePartition(partition_index=9),
                    ),
                ),
                OffsetDeleteResponseTopic(
                    name="none", partitions=(OffsetDeleteResponsePartition(partition_index=0),)
                ),
            )
        )
        assert history.records()[records:] == [
            (OffsetCommitKey(group="group", topic="topic", partition=1), None)
        ]
        assert left(history) == [("topic", 0), ("other", 0), ("other", 1)]
        history.restart()
        assert left(history) == [("topic", 0), ("other", 0), ("other", 1)]

    def test_the_last_offset_leaves_an_empty_group(self, history: History) -> None:
        commit_all(history)
        history.ask(delete(("topic", (0, 1)), ("other", (0, 1))))
        assert left(history) == []
        assert history.group().state is State.EMPTY

    def test_a_partition_named_twice_is_deleted_once(self, history: History) -> None:
        commit_all(history)
        records = len(history.journal)
        (topic,) = history.ask(delete(("topic", (0, 0)))).topics
        assert [partition.error_code for partition in topic.partitions] == [ErrorCode.NONE] * 2
        assert len(history.journal) == records + 1

    @pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
    def test_a_group_that_had_members(self, history: History, protocol_type: str) -> None:
        """[114] [147]"""
        commit_all(history)
        (client,) = history.stable(1, protocol_type=protocol_type, protocols=subscription("topic"))
        client.leave()
        assert errors(history) == [ErrorCode.NONE, ErrorCode.NONE]


class TestBetweenGenerations:
    """The last member has left, and an id that was handed out is still pending."""

    def test_what_the_last_generation_consumed_is_kept(self, history: History) -> None:
        commit_all(history)
        (client,) = history.stable(1, protocols=subscription("topic"))
        late = history.client(protocols=subscription("other"))
        late.answer(late.join(4))
        client.leave()
        group = history.group()
        assert (group.state, group.members) == (State.PREPARING_REBALANCE, {})
        assert errors(history) == [SUBSCRIBED, ErrorCode.NONE]
        history.sleep(late.session_timeout_ms)
        assert group.state is State.EMPTY
        assert errors(history) == [ErrorCode.NONE, ErrorCode.NONE]

    def test_without_any_generation_it_may_be_anything(self, history: History) -> None:
        commit_all(history)
        client, late = history.client(protocols=subscription("topic")), history.client()
        client.enter()
        late.answer(late.join(4))
        client.leave()
        assert (history.group().state, history.group().members) == (State.PREPARING_REBALANCE, {})
        assert errors(history) == [SUBSCRIBED, SUBSCRIBED]

    def test_members_of_another_type(self, history: History) -> None:
        commit_all(history)
        (client,) = history.stable(1, protocol_type="connect")
        late = history.client(protocol_type="connect")
        late.answer(late.join(4))
        client.leave()
        assert history.group().state is State.PREPARING_REBALANCE
        assert history.ask(delete(("topic", (0,)))).error_code == ErrorCode.NON_EMPTY_GROUP


class TestWithMembers:
    @pytest.mark.parametrize("version", range(4))
    def test_topics_of_any_member_are_kept(self, history: History, version: int) -> None:
        """[114] [146]"""
        commit_all(history)
        history.stable(1, protocols=subscription("third", "topic", version=version))
        assert errors(history) == [SUBSCRIBED, ErrorCode.NONE]
        assert left(history) == [("topic", 0), ("topic", 1), ("other", 1)]

    def test_a_topic_counts_as_subscribed_whatever_was_committed(self, history: History) -> None:
        history.stable(1, protocols=subscription("topic"))
        assert errors(history) == [SUBSCRIBED, ErrorCode.NONE]
        assert history.records()[-1].value is not None

    def test_after_a_restart(self, history: History) -> None:
        commit_all(history)
        history.stable(1, protocols=subscription("topic"))
        history.restart()
        assert errors(history) == [SUBSCRIBED, ErrorCode.NONE]

    @pytest.mark.parametrize(
        ("metadata", "other"),
        [
            (b"", SUBSCRIBED),
            (b"\0", SUBSCRIBED),
            (subscription("topic", version=0)[0].metadata[:-4], SUBSCRIBED),
            (subscription("topic", version=0)[0].metadata + b"more", ErrorCode.NONE),
            (subscription("topic", version=1)[0].metadata[:-2], ErrorCode.NONE),
            (b"\xff\xff" + subscription("topic")[0].metadata[2:], ErrorCode.NONE),
        ],
        ids=["empty", "one byte", "cut off", "too long", "cut off behind v0's fields", "version -1"],
    )
    def test_a_subscription_that_cannot_be_read_is_to_every_topic(
        self, history: History, metadata: bytes, other: ErrorCode
    ) -> None:
        """[114] [147]"""
        commit_all(history)
        history.stable(1, protocols=protocols("range", metadata=metadata))
        assert errors(history) == [SUBSCRIBED, other]

    def test_before_the_first_generation_every_topic_counts(self, history: History) -> None:
        commit_all(history)
        history.client(protocols=subscription("topic")).enter()
        assert errors(history) == [SUBSCRIBED, SUBSCRIBED]

    def test_in_the_first_join_phase_after_all_have_left_none_does(self, history: History) -> None:
        commit_all(history)
        (client,) = history.stable(1, protocols=subscription("topic"))
        client.leave()
        history.client(protocols=subscription("topic")).enter()
        assert history.group().state is State.PREPARING_REBALANCE
        assert errors(history) == [ErrorCode.NONE, ErrorCode.NONE]

    def test_a_member_s_topics_count_from_its_first_generation_on(self, history: History) -> None:
        """[114]"""
        commit_all(history)
        (client,) = history.stable(1, protocols=subscription("topic"))
        newcomer = history.client(protocols=subscription("other"))
        newcomer.enter()
        assert errors(history) == [SUBSCRIBED, ErrorCode.NONE]
        client.join()
        assert history.group().state is State.COMPLETING_REBALANCE
        assert errors(history) == [SUBSCRIBED, SUBSCRIBED]


class TestWhileMembersJoinAgain:
    def test_the_topics_of_the_last_generation_are_kept(self, history: History) -> None:
        """[114]"""
        commit_all(history)
        leader, _ = history.stable(2, protocols=subscription("topic"))
        leader.protocols = subscription("other")
        leader.join()
        assert history.group().state is State.PREPARING_REBALANCE
        assert errors(history) == [SUBSCRIBED, ErrorCode.NONE]
