"""Answers with an error: each can be read, at every version, and carries it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshim.answering import error_answers as errors
from kshim.api.api_versions import ANNOUNCED
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.message import definition
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponseTopic,
)
from schemas.registry import MESSAGES, VERSIONS, decode_response, encode_response
from tests.faults.carried_errors import carried
from tests.faults.world import one_of_each
from tests.schemas.strategies import messages

CASES = [(key, version) for key in sorted(ANNOUNCED) for version in VERSIONS[key]]
WRONG = ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("api_key", sorted(ANNOUNCED), ids=lambda key: key.title)
def test_each_api_has_a_place_at_every_version(api_key: ApiKey) -> None:
    """So a fault with an error is possible for every API that is served."""
    for version in VERSIONS[api_key]:
        assert errors.places(api_key, version)


@pytest.mark.parametrize("api_key", sorted(ANNOUNCED), ids=lambda key: key.title)
def test_an_answer_carries_the_error(api_key: ApiKey) -> None:
    for version in VERSIONS[api_key]:
        for error in (ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_MEMBER_ID, WRONG):
            place = errors.place(api_key, version, error)
            response = errors.answer(api_key, version, one_of_each(api_key, version), error)
            frame = encode_response(api_key, version, 5, response)
            assert carried(decode_response(api_key, version, frame)[1], place) == [error]


@given(st.data())
@settings(max_examples=150)
def test_an_answer_to_any_request_carries_the_error_or_there_is_none(data: st.DataObject) -> None:
    api_key, version = data.draw(st.sampled_from(CASES))
    request = data.draw(messages(MESSAGES[api_key][0], version))
    error = data.draw(st.sampled_from(sorted(ErrorCode)))
    response = errors.answer(api_key, version, request, error)
    if response is not None:
        frame = encode_response(api_key, version, 5, response)
        found = carried(decode_response(api_key, version, frame)[1], errors.place(api_key, version, error))
        assert found
        assert set(found) == {error}


@pytest.mark.parametrize(
    ("api_key", "version", "error", "place"),
    [
        (ApiKey.HEARTBEAT, 4, WRONG, "error_code"),
        (ApiKey.PRODUCE, 13, WRONG, "responses.partition_responses.error_code"),
        (ApiKey.FETCH, 17, ErrorCode.INVALID_FETCH_SESSION_EPOCH, "error_code"),
        (ApiKey.FETCH, 17, ErrorCode.OFFSET_OUT_OF_RANGE, "responses.partitions.error_code"),
        (ApiKey.METADATA, 1, ErrorCode.LEADER_NOT_AVAILABLE, "topics.error_code"),
        (ApiKey.METADATA, 13, ErrorCode.LEADER_NOT_AVAILABLE, "topics.error_code"),
        (ApiKey.METADATA, 13, ErrorCode.REBOOTSTRAP_REQUIRED, "error_code"),
        (ApiKey.OFFSET_FETCH, 1, ErrorCode.NOT_COORDINATOR, "topics.partitions.error_code"),
        (ApiKey.OFFSET_FETCH, 7, ErrorCode.NOT_COORDINATOR, "error_code"),
        (ApiKey.OFFSET_FETCH, 8, ErrorCode.NOT_COORDINATOR, "groups.error_code"),
        (ApiKey.OFFSET_FETCH, 8, ErrorCode.UNSTABLE_OFFSET_COMMIT, "groups.topics.partitions.error_code"),
        (ApiKey.LEAVE_GROUP, 2, ErrorCode.UNKNOWN_MEMBER_ID, "error_code"),
        (ApiKey.LEAVE_GROUP, 3, ErrorCode.UNKNOWN_MEMBER_ID, "members.error_code"),
        (ApiKey.LEAVE_GROUP, 3, ErrorCode.NOT_COORDINATOR, "error_code"),
        (ApiKey.FIND_COORDINATOR, 4, WRONG, "coordinators.error_code"),
    ],
)
def test_the_place_is_where_clients_look(api_key: ApiKey, version: int, error: ErrorCode, place: str) -> None:
    assert ".".join(errors.place(api_key, version, error)) == place


def test_an_answer_repeats_what_was_asked_for() -> None:
    commit = errors.answer(
        ApiKey.OFFSET_COMMIT, 9, one_of_each(ApiKey.OFFSET_COMMIT, 9), ErrorCode.ILLEGAL_GENERATION
    )
    assert commit is not None
    (topic,) = commit.topics
    assert isinstance(topic, OffsetCommitResponseTopic)
    assert (topic.name, topic.partitions[0].partition_index) == ("t", 7)
    found = errors.answer(ApiKey.FIND_COORDINATOR, 6, one_of_each(ApiKey.FIND_COORDINATOR, 6), WRONG)
    assert found is not None
    (coordinator,) = found.coordinators
    assert (coordinator.key, coordinator.node_id, coordinator.port) == ("t", -1, -1)
    listed = errors.answer(ApiKey.LIST_OFFSETS, 7, one_of_each(ApiKey.LIST_OFFSETS, 7), WRONG)
    assert listed is not None
    (partition,) = listed.topics[0].partitions
    assert (partition.partition_index, partition.timestamp, partition.offset) == (7, -1, -1)


def test_a_request_for_nothing_has_no_place() -> None:
    request = MESSAGES[ApiKey.DELETE_GROUPS][0](groups_names=())
    assert errors.answer(ApiKey.DELETE_GROUPS, 2, request, WRONG) is None


def test_every_place_that_is_named_by_hand_exists() -> None:
    for api_key, (within, _) in errors.FURTHER_IN.items():
        there = {place for version in VERSIONS[api_key] for place in errors.places(api_key, version)}
        assert within <= there
    named = {name for key in VERSIONS for name in _field_names(MESSAGES[key][1])}
    assert named >= errors.UNKNOWN


def _field_names(cls: Any) -> set[str]:
    found = set()
    for field in definition(cls).fields:
        found.add(field.name)
        entity = getattr(field.type, "element", field.type)
        if isinstance(entity, type):
            found |= _field_names(entity)
    return found


def test_the_entries_of_a_refusal_are_made_when_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    partitions = (OffsetCommitRequestPartition(partition_index=3),)
    topics = [OffsetCommitRequestTopic(name=f"topic-{number}", partitions=partitions) for number in range(9)]
    empty = OffsetCommitRequestTopic(name="empty", partitions=())
    request = OffsetCommitRequest(group_id="g", topics=(*topics, empty))
    made: list[object] = []
    repeated = errors._repeated
    monkeypatch.setattr(errors, "_repeated", lambda *each: made.append(each) or repeated(*each))
    refused = errors.answer(ApiKey.OFFSET_COMMIT, 8, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert refused is not None
    assert (len(made), len(refused.topics)) == (1, 9)
    assert [each.partitions[0].partition_index for each in refused.topics] == [3] * 9
