"""Which clients may commit, what is kept of a commit, and what is read back."""

from uuid import UUID

import pytest

from kshim.coordination.groups.refusals import DeleteGroup
from kshim.coordination.groups.states import State
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataKey, OffsetCommitKey
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.coordination.groups.history import SESSION_MS, History, protocols

TOPIC_ID = UUID(int=7)
NO_COMMIT = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}


OLD_ID, NEW_ID = UUID(int=8), UUID(int=9)


def partition(index: int, offset: int = 5, **fields: object) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, **fields)


def commit(
    *partitions: OffsetCommitRequestPartition, topic: str = "topic", **fields: object
) -> OffsetCommitRequest:
    named = OffsetCommitRequestTopic(name=topic, topic_id=TOPIC_ID, partitions=partitions)
    return OffsetCommitRequest(group_id="group", topics=(named,), **fields)


def fetch(*topics: tuple[str, tuple[int, ...]]) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(
        group_id="group",
        topics=tuple(OffsetFetchRequestTopics(name=t, partition_indexes=indexes) for t, indexes in topics),
    )


ALL = OffsetFetchRequestGroup(group_id="group", topics=None)


class TestWhoMayCommit:
    @pytest.mark.parametrize("version", range(2, 11))
    def test_a_generation_of_an_unknown_group(self, history: History, version: int) -> None:
        """[127] [136]"""
        client = history.client(member_id="member", generation_id=3)
        expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
        assert client.commit(7, version) == expected
        assert history.groups() == {}

    def test_a_dead_group(self, history: History) -> None:
        """[128]"""
        (client,) = history.stable(1)
        history.group().transition_to(State.DEAD, history.now_ms)
        assert client.commit(7) == ErrorCode.COORDINATOR_NOT_AVAILABLE

    def test_members_of_another_id_instance_or_generation(self, history: History) -> None:
        """[128]"""
        first, second = history.stable(2, static=True)
        assert first.commit(7, member_id="stranger", group_instance_id=None) == ErrorCode.UNKNOWN_MEMBER_ID
        assert first.commit(7, group_instance_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
        assert first.commit(7, member_id=second.member_id) == ErrorCode.FENCED_INSTANCE_ID
        assert first.commit(7, generation_id_or_member_epoch=2) == ErrorCode.ILLEGAL_GENERATION
        assert first.commit(7, generation_id_or_member_epoch=-1) == ErrorCode.ILLEGAL_GENERATION
        assert first.committed() == -1

    def test_nobody_while_assignments_are_awaited(self, history: History) -> None:
        """[129]"""
        (client,) = history.stable(1)
        client.join()
        assert client.commit(7) == ErrorCode.REBALANCE_IN_PROGRESS
        assert client.commit(7, member_id="stranger") == ErrorCode.UNKNOWN_MEMBER_ID
        assert client.commit(7, generation_id_or_member_epoch=1) == ErrorCode.ILLEGAL_GENERATION

    def test_the_old_generation_while_members_join(self, history: History) -> None:
        _, follower = history.stable(2)
        history.client().enter()
        assert history.group().state is State.PREPARING_REBALANCE
        assert follower.commit(7) == ErrorCode.NONE
        assert follower.committed() == 7

    def test_nobody_without_an_identity_while_there_are_members(self, history: History) -> None:
        """[130]"""
        history.stable(1)
        assert history.client().commit(7) == ErrorCode.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize("fields", [{}, {"member_id": "any"}, {"group_instance_id": "any"}])
    def test_anyone_without_a_generation_while_there_are_none(
        self, history: History, fields: dict[str, str]
    ) -> None:
        """[131]"""
        client = history.client(**fields)
        assert client.commit(7) == ErrorCode.NONE
        assert client.commit(8) == ErrorCode.NONE
        assert client.committed() == 8
        group = history.group()
        assert (group.state, group.protocol_type, group.generation) == (State.EMPTY, None, 0)
        assert [type(record.key) for record in history.records()] == [OffsetCommitKey] * 2

    def test_an_administrator_once_all_members_have_left(self, history: History) -> None:
        """[132]"""
        (client,) = history.stable(1)
        client.leave()
        assert client.commit(7) == ErrorCode.UNKNOWN_MEMBER_ID
        assert history.client().commit(7) == ErrorCode.NONE
        assert client.committed() == 7

    def test_a_group_that_only_has_offsets_can_be_joined(self, history: History) -> None:
        history.client().commit(7)
        (client,) = history.stable(1)
        assert client.committed() == 7

    def test_the_group_with_the_empty_id(self, history: History) -> None:
        """[136]"""
        client = history.client(group_id="")
        assert client.commit(7) == ErrorCode.NONE
        assert client.committed() == 7

    @pytest.mark.parametrize("rebalancing", [False, True])
    def test_a_commit_counts_as_a_heartbeat(self, history: History, rebalancing: bool) -> None:
        """[134]"""
        _, follower = history.stable(2)
        if rebalancing:
            history.client().enter()
        for _ in range(3):
            history.sleep(SESSION_MS - 1)
            assert follower.commit(7) == ErrorCode.NONE
        history.sleep(SESSION_MS)
        assert follower.member_id not in history.group().members

    def test_one_that_is_refused_does_not(self, history: History) -> None:
        (client,) = history.stable(1)
        history.sleep(SESSION_MS - 1)
        assert client.commit(7, generation_id_or_member_epoch=9) == ErrorCode.ILLEGAL_GENERATION
        history.sleep(1)
        assert history.group().members == {}

    def test_a_group_s_error_is_that_of_every_partition(self, history: History) -> None:
        history.stable(1)
        assert history.ask(commit(partition(0), partition(1))) == OffsetCommitResponse(
            topics=(
                OffsetCommitResponseTopic(
                    name="topic",
                    topic_id=TOPIC_ID,
                    partitions=tuple(
                        OffsetCommitResponsePartition(
                            partition_index=index, error_code=ErrorCode.UNKNOWN_MEMBER_ID
                        )
                        for index in (0, 1)
                    ),
                ),
            )
        )


class TestWhatIsKept:
    def test_everything_of_a_commit(self, history: History) -> None:
        """[158]"""
        request = commit(
            partition(3, 100, committed_leader_epoch=4, committed_metadata="note"),
            partition(4, 200, committed_metadata=None),
        )
        assert history.ask(request) == OffsetCommitResponse(
            topics=(
                OffsetCommitResponseTopic(
                    name="topic",
                    topic_id=TOPIC_ID,
                    partitions=(
                        OffsetCommitResponsePartition(partition_index=3),
                        OffsetCommitResponsePartition(partition_index=4),
                    ),
                ),
            )
        )
        first, second = history.records()
        assert first.key == OffsetCommitKey(group="group", topic="topic", partition=3)
        assert (first.value.offset, first.value.leader_epoch, first.value.metadata) == (100, 4, "note")
        assert (first.value.commit_timestamp, first.value.expire_timestamp) == (history.now_ms, -1)
        assert (second.value.offset, second.value.leader_epoch, second.value.metadata) == (200, -1, "")

    def test_a_retention_time(self, history: History) -> None:
        """[133] [158]"""
        history.ask(commit(partition(0), retention_time_ms=1234), 4)
        (record,) = history.records()
        assert record.value.expire_timestamp == history.now_ms + 1234

    @pytest.mark.parametrize(
        ("metadata", "error"),
        [
            ("x" * 4096, ErrorCode.NONE),
            ("x" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
            ("ß" * 4096, ErrorCode.NONE),
            ("\U0001f600" * 2048, ErrorCode.NONE),
            ("\U0001f600" * 2048 + "x", ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ],
        ids=["4096", "4097", "not of bytes", "4096 units", "4097 units"],
    )
    def test_metadata_up_to_a_number_of_utf_16_units(
        self, history: History, metadata: str, error: ErrorCode
    ) -> None:
        """[135]"""
        assert history.client().commit(7, metadata=metadata) == error

    def test_a_commit_of_nothing_creates_no_group(self, history: History) -> None:
        """[135]"""
        history.client().commit(7, metadata="x" * 4097)
        assert history.groups() == {}
        history.client().commit(7)
        assert list(history.groups()) == ["group"]

    def test_the_partitions_whose_metadata_is_not_too_long(self, history: History) -> None:
        """[135]"""
        request = commit(partition(0, committed_metadata="x" * 5000), partition(1, committed_metadata="x"))
        (topic,) = history.ask(request).topics
        assert [(p.partition_index, p.error_code) for p in topic.partitions] == [
            (0, ErrorCode.OFFSET_METADATA_TOO_LARGE),
            (1, ErrorCode.NONE),
        ]
        assert [record.key.partition for record in history.records()] == [1]

    def test_any_offset(self, history: History) -> None:
        assert history.client().commit(-5) == ErrorCode.NONE
        assert history.client().committed() == -5


class TestFetch:
    @pytest.mark.parametrize("dead", [False, True])
    def test_a_group_without_commits(self, history: History, dead: bool) -> None:
        """[140]"""
        if dead:
            history.stable(1)
            history.group().transition_to(State.DEAD, history.now_ms)
        assert history.ask(fetch(("topic", (0, 9)))) == OffsetFetchResponseGroup(
            group_id="group",
            topics=(
                OffsetFetchResponseTopics(
                    name="topic",
                    partitions=(
                        OffsetFetchResponsePartitions(partition_index=0, **NO_COMMIT),
                        OffsetFetchResponsePartitions(partition_index=9, **NO_COMMIT),
                    ),
                ),
            ),
        )
        assert history.ask(ALL) == OffsetFetchResponseGroup(group_id="group")

    def test_named_partitions_and_all(self, history: History) -> None:
        """[144]"""
        history.ask(
            commit(partition(0, 10, committed_leader_epoch=2, committed_metadata="m"), partition(2, 12))
        )
        history.ask(commit(partition(0, 20), topic="other"))
        answer = history.ask(fetch(("topic", (1, 0)), ("none", (0,)), ("other", ())))
        assert [
            (t.name, [(p.partition_index, p.committed_offset) for p in t.partitions]) for t in answer.topics
        ] == [
            ("topic", [(1, -1), (0, 10)]),
            ("none", [(0, -1)]),
            ("other", []),
        ]
        assert answer.topics[0].partitions[1] == OffsetFetchResponsePartitions(
            partition_index=0, committed_offset=10, committed_leader_epoch=2, metadata="m"
        )
        answer = history.ask(ALL)
        assert [
            (t.name, [(p.partition_index, p.committed_offset) for p in t.partitions]) for t in answer.topics
        ] == [
            ("topic", [(0, 10), (2, 12)]),
            ("other", [(0, 20)]),
        ]
        assert history.ask(fetch()) == OffsetFetchResponseGroup(group_id="group")

    def test_member_id_and_epoch_do_not_matter(self, history: History) -> None:
        history.stable(1)
        request = OffsetFetchRequestGroup(group_id="group", member_id="any", member_epoch=9, topics=None)
        assert history.ask(request).error_code == ErrorCode.NONE

    def test_of_a_topic_that_was_made_again(self, history: History) -> None:
        history.ask(commit(partition(0, 7)))
        assert history.records()[0].value.topic_id == TOPIC_ID
        offsets = {}
        for topic_id in (TOPIC_ID, UUID(int=0), UUID(int=8)):
            topic = OffsetFetchRequestTopics(name="topic", topic_id=topic_id, partition_indexes=(0,))
            answer = history.ask(OffsetFetchRequestGroup(group_id="group", topics=(topic,)))
            offsets[topic_id.int] = answer.topics[0].partitions[0].committed_offset
        assert offsets == {7: 7, 0: 7, 8: -1}

    def test_the_last_commit_counts(self, history: History) -> None:
        client = history.client()
        for offset in (7, 9, 8):
            client.commit(offset)
        assert client.committed() == 8


class TestDeletion:
    def test_a_group_goes_with_all_its_offsets(self, history: History) -> None:
        """[120] [121] [148]"""
        (client,) = history.stable(1)
        client.commit(7)
        client.leave()
        history.ask(commit(partition(4, 1)))
        records = len(history.journal)
        assert history.ask(DeleteGroup("group")).error_code == ErrorCode.NONE
        assert history.records()[records:] == [
            (OffsetCommitKey(group="group", topic="topic", partition=0), None),
            (OffsetCommitKey(group="group", topic="topic", partition=4), None),
            (GroupMetadataKey(group="group"), None),
        ]
        assert client.committed() == -1
        assert history.groups() == {}
        assert history.ask(DeleteGroup("group")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        history.restart()
        assert history.groups() == {}
        assert client.committed() == -1

    def test_a_pending_id_does_not_keep_a_group(self, history: History) -> None:
        client = history.client()
        client.join()
        assert history.ask(DeleteGroup("group")).error_code == ErrorCode.NONE
        assert client.error(client.join()) == ErrorCode.UNKNOWN_MEMBER_ID
        history.sleep(SESSION_MS)

    def test_a_topic_goes_with_its_offsets_in_every_group(self, history: History) -> None:
        """[156]"""
        clients = [history.client(group_id=f"group-{n}") for n in range(5)]
        for client in clients:
            client.commit(7)
        history.ask(commit(partition(0, 9), topic="other"))
        history.delete_topics("topic", "unknown")
        assert [client.committed() for client in clients] == [-1] * 5
        assert history.ask(fetch(("other", (0,)))).topics[0].partitions[0].committed_offset == 9
        assert sum(record.value is None for record in history.records()) == 5
        history.restart()
        assert [client.committed() for client in clients] == [-1] * 5

    @pytest.mark.parametrize("commits_again", [False, True])
    def test_a_topic_that_is_made_again(self, history: History, *, commits_again: bool) -> None:
        """Offsets are kept with topic ids. An old topic's offset does not count for the new one.
        Offsets of the new topic stay when the old one's are deleted.
        """
        client = history.client()
        history.topic_ids["topic"] = OLD_ID
        client.commit(100)
        history.topic_ids["topic"] = NEW_ID
        assert client.committed() == -1
        assert history.ask(ALL).topics == ()
        if commits_again:
            client.commit(5)
        history.topic_ids["topic"] = OLD_ID  # whoever deletes, names the id that was deleted
        history.delete_topics("topic")
        history.topic_ids["topic"] = NEW_ID
        assert client.committed() == (5 if commits_again else -1)
        history.restart()
        assert client.committed() == (5 if commits_again else -1)
        assert len(history.ask(ALL).topics) == commits_again

    def test_an_offset_without_a_topic_id_goes_by_the_name(self, history: History) -> None:
        client = history.client()
        client.commit(100)
        history.topic_ids["topic"] = NEW_ID
        assert client.committed() == 100
        history.topic_ids["topic"] = OLD_ID
        history.delete_topics("topic")
        assert client.committed() == -1

    def test_members_of_a_group_whose_topic_goes_are_not_disturbed(self, history: History) -> None:
        (client,) = history.stable(1, protocols=protocols("range"))
        client.commit(7)
        history.delete_topics("topic")
        assert client.heartbeat() == ErrorCode.NONE
