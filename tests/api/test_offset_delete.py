"""OffsetDelete: existing partitions go to the group, whose error overrides theirs."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
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
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.api.groups import Groups, versions
from tests.api.harness import create

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NONE = ErrorCode.NONE


@pytest.fixture
def groups() -> Groups:
    """The group has committed for all three partitions."""
    groups = Groups()
    create(groups.broker, "two", 2)
    create(groups.broker, "one", 1)
    topics = tuple(
        OffsetCommitRequestTopic(
            name=name,
            partitions=tuple(
                OffsetCommitRequestPartition(partition_index=index, committed_offset=5) for index in indexes
            ),
        )
        for name, indexes in (("two", (0, 1)), ("one", (0,)))
    )
    groups.ask(OffsetCommitRequest(group_id="group", topics=topics), 9)
    return groups


def delete(*topics: tuple[str, tuple[int, ...]], group_id: str = "group") -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in indexes),
            )
            for name, indexes in topics
        ),
    )


def listed(answer: OffsetDeleteResponse) -> list[tuple[str, list[tuple[int, int]]]]:
    assert answer.error_code == NONE
    return [
        (topic.name, [(p.partition_index, p.error_code) for p in topic.partitions]) for topic in answer.topics
    ]


def committed(groups: Groups) -> list[tuple[str, list[int]]]:
    wanted = OffsetFetchRequestGroup(group_id="group", topics=None)
    (group,) = groups.ask(OffsetFetchRequest(groups=(wanted,)), 9).groups
    return [(topic.name, [p.partition_index for p in topic.partitions]) for topic in group.topics]


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_DELETE))
class TestEveryVersion:
    def test_partitions_that_exist(self, groups: Groups, version: int) -> None:
        answer = groups.ask(delete(("two", (1,)), ("one", (0,))), version)
        assert listed(answer) == [("two", [(1, NONE)]), ("one", [(0, NONE)])]
        assert committed(groups) == [("two", [0])]

    def test_missing_partitions_come_first_in_one_entry_per_topic(self, groups: Groups, version: int) -> None:
        """The order is Apache Kafka 4.2's."""
        request = delete(("none", (0, 3)), ("two", (7, 0, -1)), ("one", (0,)), ("none2", ()))
        assert listed(groups.ask(request, version)) == [
            ("none", [(0, UNKNOWN), (3, UNKNOWN)]),
            ("two", [(7, UNKNOWN), (-1, UNKNOWN), (0, NONE)]),
            ("none2", []),
            ("one", [(0, NONE)]),
        ]
        assert committed(groups) == [("two", [1])]

    def test_a_topic_named_twice(self, groups: Groups, version: int) -> None:
        assert listed(groups.ask(delete(("two", (0,)), ("one", (0,)), ("two", (1, 0))), version)) == [
            ("two", [(0, NONE)]),
            ("one", [(0, NONE)]),
            ("two", [(1, NONE), (0, NONE)]),
        ]
        assert listed(groups.ask(delete(("two", (1, 1)), ("two", (0, 9))), version)) == [
            ("two", [(9, UNKNOWN), (1, NONE), (1, NONE), (0, NONE)])
        ]

    def test_a_topic_without_partitions_is_not_answered(self, groups: Groups, version: int) -> None:
        assert listed(groups.ask(delete(("two", ())), version)) == []
        assert listed(groups.ask(delete(), version)) == []

    @pytest.mark.parametrize("topics", [(), (("none", (0,)),), (("none", (0,)), ("two", (0,)))])
    @pytest.mark.parametrize(
        ("group_id", "error"),
        [
            ("absent", ErrorCode.GROUP_ID_NOT_FOUND),
            ("", ErrorCode.INVALID_GROUP_ID),
            ("full", ErrorCode.NON_EMPTY_GROUP),
        ],
    )
    def test_a_group_s_error_stands_alone(
        self, groups: Groups, version: int, group_id: str, error: ErrorCode, topics: tuple[Any, ...]
    ) -> None:
        """[147]"""
        groups.member("full", protocol_type="connect")
        answer = groups.ask(delete(*topics, group_id=group_id), version)
        assert answer == OffsetDeleteResponse(error_code=error)
