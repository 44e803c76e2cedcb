"""OffsetCommit: existing partitions are committed, others refused; by name, and by id from v10 on."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kshim.api.delete_topics import delete_topics
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.delete_topics import DeleteTopicsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.api.groups import Groups, versions
from tests.api.harness import ask, create

NO_ID, UNKNOWN_ID = UUID(int=0), UUID(int=99)
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def groups() -> Groups:
    groups = Groups()
    create(groups.broker, "two", 2)
    create(groups.broker, "one", 1)
    return groups


def commit(groups: Groups, version: int, *topics: tuple[str, tuple[int, ...]], **fields: Any) -> list[Any]:
    """Commit offset 5 for these; returns the answer as (topic, [(partition, error), ...])."""
    request = OffsetCommitRequest(
        group_id="group",
        topics=tuple(
            OffsetCommitRequestTopic(
                name=name,
                topic_id=topic_id(groups, name),
                partitions=tuple(
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=5)
                    for index in indexes
                ),
            )
            for name, indexes in topics
        ),
        **fields,
    )
    names = {topic_id(groups, name): name for name, _ in topics}
    return [
        (
            names[topic.topic_id] if version >= 10 else topic.name,
            [(partition.partition_index, partition.error_code) for partition in topic.partitions],
        )
        for topic in groups.ask(request, version).topics
    ]


def topic_id(groups: Groups, name: str) -> UUID:
    topic = groups.broker.cluster.topics.get(name)
    return UNKNOWN_ID if topic is None else topic.topic_id


def committed(groups: Groups) -> dict[str, list[int]]:
    """The partitions of each topic that the group has committed."""
    wanted = OffsetFetchRequestGroup(group_id="group", topics=None)
    (group,) = groups.ask(OffsetFetchRequest(groups=(wanted,)), 9).groups
    return {
        topic.name: [partition.partition_index for partition in topic.partitions] for topic in group.topics
    }


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
class TestEveryVersion:
    def test_partitions_that_exist(self, groups: Groups, version: int) -> None:
        assert commit(groups, version, ("two", (0, 1)), ("one", (0,))) == [
            ("two", [(0, ErrorCode.NONE), (1, ErrorCode.NONE)]),
            ("one", [(0, ErrorCode.NONE)]),
        ]
        assert committed(groups) == {"two": [0, 1], "one": [0]}

    def test_missing_partitions_come_first_in_one_entry_per_topic(self, groups: Groups, version: int) -> None:
        answer = commit(groups, version, ("none", (0,)), ("two", (7, 0, -1)), ("one", (0,)))
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else UNKNOWN
        assert answer == [
            ("none", [(0, unknown)]),
            ("two", [(7, UNKNOWN), (-1, UNKNOWN), (0, ErrorCode.NONE)]),
            ("one", [(0, ErrorCode.NONE)]),
        ]
        assert committed(groups) == {"two": [0], "one": [0]}

    def test_a_group_s_error_is_that_of_the_partitions_that_exist(self, groups: Groups, version: int) -> None:
        """[127]"""
        group_error = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
        answer = commit(groups, version, ("two", (9, 0)), generation_id_or_member_epoch=3, member_id="m")
        assert answer == [("two", [(9, UNKNOWN), (0, group_error)])]

    def test_with_nothing_that_exists_the_group_does_not_matter(self, groups: Groups, version: int) -> None:
        answer = commit(groups, version, ("two", (9,)), generation_id_or_member_epoch=3, member_id="m")
        assert answer == [("two", [(9, UNKNOWN)])]
        assert commit(groups, version, generation_id_or_member_epoch=3) == []
        assert commit(groups, version, ("two", ()), generation_id_or_member_epoch=3) == []

    def test_a_topic_named_twice(self, groups: Groups, version: int) -> None:
        assert commit(groups, version, ("two", (0,)), ("two", (1,))) == [
            ("two", [(0, ErrorCode.NONE)]),
            ("two", [(1, ErrorCode.NONE)]),
        ]
        assert commit(groups, version, ("two", (0, 8)), ("two", (1, 9))) == [
            ("two", [(8, UNKNOWN), (9, UNKNOWN), (0, ErrorCode.NONE), (1, ErrorCode.NONE)])
        ]
        assert commit(groups, version, ("two", (8,)), ("two", (9,))) == [
            ("two", [(8, UNKNOWN), (9, UNKNOWN)])
        ]


def test_a_topic_that_is_made_again_has_no_offsets(groups: Groups) -> None:
    commit(groups, 9, ("two", (0, 1)), ("one", (0,)))
    assert (
        ask(delete_topics, groups.broker, DeleteTopicsRequest(topic_names=("two",)), 5)
        .responses[0]
        .error_code
        == 0
    )
    create(groups.broker, "two", 2)
    assert committed(groups) == {"one": [0]}
