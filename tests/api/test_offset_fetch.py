"""OffsetFetch: one group up to v7, many from v8 on; topics by id from v10 on."""

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
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from tests.api.groups import Groups, versions
from tests.api.harness import ask, create

VERSIONS = versions(ApiKey.OFFSET_FETCH)
UNKNOWN_ID = UUID(int=99)
Named = tuple[tuple[str, tuple[int, ...]], ...]


@pytest.fixture
def groups() -> Groups:
    """The group "group" has committed 70 and 71 to the two partitions of "two"."""
    groups = Groups()
    create(groups.broker, "two", 2)
    create(groups.broker, "one", 1)
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=n, committed_offset=70 + n, committed_leader_epoch=n, committed_metadata=f"m{n}"
        )
        for n in (0, 1)
    )
    request = OffsetCommitRequest(
        group_id="group", topics=(OffsetCommitRequestTopic(name="two", partitions=partitions),)
    )
    groups.ask(request, 9)
    return groups


def topic_id(groups: Groups, name: str) -> UUID:
    topic = groups.broker.cluster.topics.get(name)
    return UNKNOWN_ID if topic is None else topic.topic_id


def fetch(groups: Groups, version: int, topics: Named | None, group_id: str = "group", **fields: Any) -> Any:
    """The answer's topics, as (name, [(partition, offset, error), ...])."""
    if version < 8:
        wanted = topics and tuple(OffsetFetchRequestTopic(name=n, partition_indexes=i) for n, i in topics)
        answer = groups.ask(OffsetFetchRequest(group_id=group_id, topics=wanted, **fields), version)
    else:
        by_id = topics and tuple(
            OffsetFetchRequestTopics(name=n, topic_id=topic_id(groups, n), partition_indexes=i)
            for n, i in topics
        )
        group = OffsetFetchRequestGroup(group_id=group_id, topics=by_id)
        (answer,) = groups.ask(OffsetFetchRequest(groups=(group,), **fields), version).groups
        assert answer.group_id == group_id
    assert answer.error_code == ErrorCode.NONE
    names = {topic_id(groups, name): name for name in ("two", "one", "none")}
    return [
        (
            names[topic.topic_id] if version >= 10 else topic.name,
            [(p.partition_index, p.committed_offset, p.error_code) for p in topic.partitions],
        )
        for topic in answer.topics
    ]


@pytest.mark.parametrize("version", VERSIONS)
class TestEveryVersion:
    def test_named_partitions(self, groups: Groups, version: int) -> None:
        """[144]"""
        none = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.NONE
        answer = fetch(groups, version, (("none", (0,)), ("two", (1, 7)), ("one", (0,))))
        expected = [("none", [(0, -1, none)]), ("two", [(1, 71, 0), (7, -1, 0)]), ("one", [(0, -1, 0)])]
        assert answer == (expected if version < 10 else [*expected[1:], expected[0]])

    def test_no_partitions(self, groups: Groups, version: int) -> None:
        assert fetch(groups, version, ()) == []

    def test_a_group_that_does_not_exist(self, groups: Groups, version: int) -> None:
        """[140]"""
        assert fetch(groups, version, (("two", (0,)),), "nobody") == [("two", [(0, -1, 0)])]

    def test_all_partitions(self, groups: Groups, version: int) -> None:
        """[144]"""
        if version >= 2:
            assert fetch(groups, version, None) == [("two", [(0, 70, 0), (1, 71, 0)])]
            assert fetch(groups, version, None, "nobody") == []

    def test_whether_it_must_be_stable_makes_no_difference(self, groups: Groups, version: int) -> None:
        if version >= 7:
            answer = fetch(groups, version, (("two", (0,)),), require_stable=True)
            assert answer == [("two", [(0, 70, 0)])]


def test_epoch_and_metadata(groups: Groups) -> None:
    request = OffsetFetchRequest(
        group_id="group", topics=(OffsetFetchRequestTopic(name="two", partition_indexes=(1,)),)
    )
    for version, epoch in ((4, -1), (5, 1)):
        partition = groups.ask(request, version).topics[0].partitions[0]
        assert (partition.committed_leader_epoch, partition.metadata) == (epoch, "m1")


def test_many_groups_in_the_order_asked_for(groups: Groups) -> None:
    """[144]"""
    wanted = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("nobody", "group", "nobody")]
    answer = groups.ask(OffsetFetchRequest(groups=tuple(wanted)), 8)
    assert [(group.group_id, len(group.topics)) for group in answer.groups] == [
        ("nobody", 0),
        ("group", 1),
        ("nobody", 0),
    ]
    assert groups.ask(OffsetFetchRequest(groups=()), 8) == OffsetFetchResponse()


def test_all_topics_by_id_leave_out_one_that_was_deleted(groups: Groups) -> None:
    assert fetch(groups, 10, None) == [("two", [(0, 70, 0), (1, 71, 0)])]
    ask(delete_topics, groups.broker, DeleteTopicsRequest(topic_names=("two",)), 5)
    assert fetch(groups, 10, None) == []


GOING = ErrorCode.COORDINATOR_NOT_AVAILABLE


class TestAGroupsError:
    """The answers of a broker that is shutting down."""

    @pytest.fixture
    def stopped(self, groups: Groups) -> Groups:
        groups.runtime.stop()
        return groups

    def test_in_v1_is_that_of_every_partition(self, stopped: Groups) -> None:
        request = OffsetFetchRequest(
            group_id="group", topics=(OffsetFetchRequestTopic(name="two", partition_indexes=(0,)),)
        )
        partition = OffsetFetchResponsePartition(
            partition_index=0, committed_offset=-1, metadata="", error_code=GOING
        )
        assert stopped.ask(request, 1) == OffsetFetchResponse(
            topics=(OffsetFetchResponseTopic(name="two", partitions=(partition,)),)
        )

    @pytest.mark.parametrize("version", range(2, 8))
    def test_up_to_v7_is_at_the_top(self, stopped: Groups, version: int) -> None:
        request = OffsetFetchRequest(group_id="group", topics=None)
        assert stopped.ask(request, version) == OffsetFetchResponse(error_code=GOING)

    @pytest.mark.parametrize("version", [8, 9, 10])
    def test_from_v8_on_is_the_group_s(self, stopped: Groups, version: int) -> None:
        topic = OffsetFetchRequestTopics(name="two", topic_id=UNKNOWN_ID, partition_indexes=(0,))
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="group", topics=(topic,)),))
        assert stopped.ask(request, version) == OffsetFetchResponse(
            groups=(OffsetFetchResponseGroup(group_id="group", error_code=GOING),)
        )
