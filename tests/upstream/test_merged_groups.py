"""The groups of both sides as clients see them: who answers, and what becomes of a group's twin."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kshim.upstream.upstream_groups import MOST_AT_ONCE
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.delete_groups import DeleteGroupsRequest
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from schemas.registry import VERSIONS, decode_response
from tests.api.harness import PENDING, advance, later, result
from tests.upstream.front_world import TOPIC_ID, World, commit, join
from tests.upstream.kafka_groups import Group

OFFSETS = {("t", 0): (41, 2, "there")}
COMMIT = 9


def ask(world: World, key: ApiKey, version: int, request: Any, at: int = 1) -> Any:
    """The response, which takes some turns of the reactor."""
    answer = later(world.send(key, version, request, at))
    for _ in range(60):
        advance(world.here)
    reply = result(answer)
    assert reply is not PENDING
    return decode_response(key, version, bytes(reply))[1]


def both() -> World:
    """Group "ours" is known here, and has a twin; "theirs" is at the upstream alone."""
    world = World()
    world.upstream_topics["t"] = TOPIC_ID
    assert commit(world, COMMIT, "ours") == ErrorCode.NONE
    world.kafka.groups = {"ours": Group(), "theirs": Group(offsets=dict(OFFSETS)), "__kshim": Group("Stable")}
    return world


# ---- lists


def listed(world: World, at: int, version: int = 5, **filters: Any) -> list[tuple[str, str, str]]:
    response = ask(world, ApiKey.LIST_GROUPS, version, ListGroupsRequest(**filters), at)
    assert response.error_code == ErrorCode.NONE
    return sorted((each.group_id, each.group_state, each.group_type) for each in response.groups)


def test_each_group_is_listed_once_over_all_ports() -> None:
    world = both()
    everywhere = listed(world, 1) + listed(world, 2)
    assert sorted(everywhere) == [("ours", "Empty", "classic"), ("theirs", "Empty", "classic")]


@pytest.mark.parametrize("version", VERSIONS[ApiKey.LIST_GROUPS])
def test_a_list_in_every_version(version: int) -> None:
    world = both()
    world.kafka.groups["new"] = Group("Stable", "consumer")
    everywhere = {it for at in (1, 2) for it in listed(world, at, version)}
    state, of_type = (version >= 4), (version >= 5)
    assert everywhere == {
        ("ours", "Empty" * state, "classic" * of_type),
        ("theirs", "Empty" * state, "classic" * of_type),
        ("new", "Stable" * state, "consumer" * of_type),
    }


def test_filters_reach_the_upstream() -> None:
    world = both()
    world.kafka.groups["new"] = Group("Stable", "consumer")
    at = 1 + len("new") % 2
    assert listed(world, at, types_filter=("consumer",)) == [("new", "Stable", "consumer")]
    assert listed(world, at, states_filter=("Stable",)) == [("new", "Stable", "consumer")]


def test_a_twin_is_hidden_whatever_the_filter_says_of_its_group() -> None:
    world = both()
    join(world, "ours")
    assert ("ours", "Empty", "classic") not in listed(world, 1, states_filter=("Empty",))
    assert ("ours", "Empty", "classic") not in listed(world, 2, states_filter=("Empty",))


@pytest.mark.parametrize(("types", "found"), [((), 1), (("Classic",), 1), (("consumer",), 0)])
def test_an_upstream_that_knows_no_types_has_classic_groups(types: tuple[str, ...], found: int) -> None:
    world = both()
    world.kafka.versions["LIST_GROUPS"] = 4
    theirs = [each for each in listed(world, 1, types_filter=types) if each[0] == "theirs"]
    assert theirs == [("theirs", "Empty", "classic")] * found


@pytest.mark.parametrize("is_down", [True, False])
def test_a_list_that_is_not_whole_is_an_error(*, is_down: bool) -> None:
    """Otherwise a tool would take a group for deleted."""
    world = both()
    world.kafka.is_down, world.kafka.error = is_down, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    response = ask(world, ApiKey.LIST_GROUPS, 5, ListGroupsRequest())
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE if is_down else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (response.error_code, response.groups) == (error, ())


def test_several_kshim_list_each_group_of_the_upstream_once() -> None:
    """At the port by which the others know this one, those that it would coordinate."""
    world = both()
    world.shards.elsewhere = set()
    shard = world.groups.shard_for
    other = next(name for name in map(str, range(100)) if shard(name) != shard("ours"))
    world.kafka.groups = {"ours": Group(), other: Group()}
    assert [name for name, *_ in listed(world, world.brokers.anchor)] == [other, "ours"]
    assert listed(world, 2) == []
    world.groups.unload(shard(other))
    assert [name for name, *_ in listed(world, world.brokers.anchor)] == ["ours"]


# ---- descriptions


def described(world: World, version: int, *group_ids: str) -> Any:
    return ask(world, ApiKey.DESCRIBE_GROUPS, version, DescribeGroupsRequest(groups=group_ids)).groups


@pytest.mark.parametrize("version", VERSIONS[ApiKey.DESCRIBE_GROUPS])
def test_a_description_in_every_version(version: int) -> None:
    world = both()
    world.kafka.groups["theirs"].state = "Stable"
    ours, theirs, nobodys = described(world, version, "ours", "theirs", "nobody's")
    absent = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
    assert (ours.group_state, len(ours.members)) == ("Empty", 0)
    assert (theirs.group_state, [each.member_id for each in theirs.members]) == ("Stable", ["m"])
    assert (nobodys.group_state, nobodys.error_code) == ("Dead", absent)


def test_many_are_asked_for_together() -> None:
    world = both()
    names = [f"g{n}" for n in range(3 * MOST_AT_ONCE)]
    world.kafka.groups.update((name, Group("Stable")) for name in names)
    assert {each.group_state for each in described(world, 6, *names)} == {"Stable"}
    asked = world.kafka.asked(DescribeGroupsRequest)
    assert len(asked) <= 2 * 4, "of two coordinators"
    assert sorted(name for each in asked for name in each.groups) == sorted(names)


@pytest.mark.parametrize(
    ("cause", "error"),
    [
        ("is_down", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("finding", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("error", ErrorCode.NOT_COORDINATOR),
    ],
)
def test_a_coordinator_that_cannot_be_asked_is_an_error_of_its_groups(cause: str, error: ErrorCode) -> None:
    world = both()
    setattr(world.kafka, cause, error)
    ours, theirs = described(world, 6, "ours", "theirs")
    assert (ours.error_code, theirs.error_code) == (ErrorCode.NONE, error)


def test_a_group_that_kshim_may_not_see_is_none(caplog: pytest.LogCaptureFixture) -> None:
    world = both()
    world.kafka.error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    for _ in range(2):
        (theirs,) = described(world, 6, "theirs")
        assert theirs.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["the upstream hides groups from kshim, as group theirs: error 30"]


# ---- offsets


def fetched(world: World, version: int, group_id: str, *, by_name: bool = False) -> dict[Any, int]:
    topics = (OffsetFetchRequestTopics(name="t", topic_id=TOPIC_ID, partition_indexes=(0,)),)
    group = OffsetFetchRequestGroup(group_id=group_id, topics=topics if by_name else None)
    request = OffsetFetchRequest(group_id=group_id, topics=None, groups=(group,))
    response = ask(world, ApiKey.OFFSET_FETCH, version, request)
    topics = response.groups[0].topics if version >= 8 else response.topics
    key = "topic_id" if version >= 10 else "name"
    return {getattr(topic, key): each.committed_offset for topic in topics for each in topic.partitions}


@pytest.mark.parametrize("version", [each for each in VERSIONS[ApiKey.OFFSET_FETCH] if each >= 2])
@pytest.mark.parametrize("theirs", [7, 9])
def test_all_offsets_of_a_group_of_the_upstream(version: int, theirs: int) -> None:
    world = both()
    world.kafka.versions["OFFSET_FETCH"] = theirs
    world.topics.by_name.clear()
    world.topics.by_id.clear()
    key: str | UUID = TOPIC_ID if version >= 10 else "t"
    assert fetched(world, version, "theirs") == {key: 41}
    assert fetched(world, version, "ours") == {key: 5}
    assert fetched(world, version, "nobody's") == {}


def test_who_names_partitions_is_told_what_was_committed_here() -> None:
    """A consumer commits here, and must not find an offset that its next commit would hide."""
    assert fetched(both(), 9, "theirs", by_name=True) == {"t": -1}


# ---- deletions


def deleted(world: World, *group_ids: str) -> dict[str, int]:
    request = DeleteGroupsRequest(groups_names=group_ids)
    results = ask(world, ApiKey.DELETE_GROUPS, 2, request).results
    return {each.group_id: each.error_code for each in results}


def test_a_group_is_deleted_where_it_is_and_its_twin_with_it() -> None:
    world = both()
    assert deleted(world, "ours", "theirs", "nobody's") == {
        "ours": ErrorCode.NONE,
        "theirs": ErrorCode.NONE,
        "nobody's": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert world.groups.group_ids() == []
    assert list(world.kafka.groups) == ["__kshim"]


def test_a_group_with_members_is_not_deleted_and_neither_is_its_twin() -> None:
    world = both()
    join(world, "ours")
    world.kafka.groups["theirs"].state = "Stable"
    non_empty = ErrorCode.NON_EMPTY_GROUP
    assert deleted(world, "ours", "theirs") == {"ours": non_empty, "theirs": non_empty}
    assert {"ours", "theirs"} <= world.kafka.groups.keys()


@pytest.mark.parametrize("cause", ["members", "is_down", "refused"])
def test_a_group_stays_as_long_as_its_twin_does(cause: str) -> None:
    """Otherwise it would go on being listed. That kshim may not delete groups there is no reason to stay."""
    world = both()
    if cause == "members":
        world.kafka.groups["ours"].state = "Stable"
    world.kafka.is_down = cause == "is_down"
    world.kafka.error = ErrorCode.GROUP_AUTHORIZATION_FAILED if cause == "refused" else ErrorCode.NONE
    errors = {"members": ErrorCode.NON_EMPTY_GROUP, "is_down": ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert deleted(world, "ours") == {"ours": errors.get(cause, ErrorCode.NONE)}
    assert world.groups.group_ids() == ([] if cause == "refused" else ["ours"])


def test_nothing_is_deleted_there_that_was_not_told() -> None:
    """Without mirroring, a group of the same name is not a twin."""
    world = World(has_twins=False)
    world.upstream_topics["t"] = TOPIC_ID
    commit(world, COMMIT, "ours")
    world.kafka.groups["ours"] = Group(offsets=dict(OFFSETS))
    assert offsets_deleted(world, "ours") == (ErrorCode.NONE, [ErrorCode.NONE])
    assert deleted(world, "ours") == {"ours": ErrorCode.NONE}
    assert world.kafka.groups["ours"].offsets == OFFSETS


def offsets_deleted(world: World, group_id: str) -> tuple[int, list[int]]:
    topic = OffsetDeleteRequestTopic(name="t", partitions=(OffsetDeleteRequestPartition(partition_index=0),))
    request = OffsetDeleteRequest(group_id=group_id, topics=(topic,))
    response = ask(world, ApiKey.OFFSET_DELETE, 0, request)
    return response.error_code, [each.error_code for it in response.topics for each in it.partitions]


@pytest.mark.parametrize("group_id", ["ours", "theirs"])
def test_offsets_are_deleted_at_both_sides(group_id: str) -> None:
    world = both()
    world.kafka.groups["ours"].offsets = dict(OFFSETS)
    assert offsets_deleted(world, group_id) == (ErrorCode.NONE, [ErrorCode.NONE])
    assert world.kafka.groups[group_id].offsets == {}
    assert fetched(world, 9, group_id) == {}


def test_offsets_of_no_group_are_not_deleted() -> None:
    assert offsets_deleted(both(), "nobody's") == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_offsets_that_stay_at_the_upstream_are_said_to(caplog: pytest.LogCaptureFixture) -> None:
    world = both()
    world.kafka.is_down = True
    assert offsets_deleted(world, "ours") == (ErrorCode.NONE, [ErrorCode.NONE])
    assert "offsets of group ours were deleted here, and are still at the upstream: error 15" in caplog.text
