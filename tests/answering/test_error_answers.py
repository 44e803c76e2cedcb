"""Answers with an error: each can be read, at every version, and carries it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshim.answering import error_answers as errors
from kshim.api.api_versions import ANNOUNCED
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.message import definition
from schemas.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    RequestEntryData,
)
from schemas.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.refusals import REFUSALS
from schemas.registry import MESSAGES, VERSIONS, decode_response, encode_response
from tests.faults.carried_errors import carried
from tests.faults.world import one_of_each
from tests.schemas.strategies import messages

CASES = [(key, version) for key in sorted(ANNOUNCED) for version in VERSIONS[key]]
WRONG = ErrorCode.UNKNOWN_SERVER_ERROR
ID = UUID(int=7)


@pytest.mark.parametrize("api_key", sorted(ANNOUNCED), ids=lambda key: key.title)
def test_each_api_has_a_place_at_every_version(api_key: ApiKey) -> None:
    """So a fault with an error is possible for every API that is served."""
    for version in VERSIONS[api_key]:
        for error in ErrorCode:
            assert errors.refusal(api_key, version, error)


@pytest.mark.parametrize("api_key", sorted(ANNOUNCED), ids=lambda key: key.title)
def test_an_answer_carries_the_error(api_key: ApiKey) -> None:
    for version in VERSIONS[api_key]:
        for error in (ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_MEMBER_ID, WRONG):
            place = errors.refusal(api_key, version, error).place
            response = errors.answer(api_key, version, one_of_each(api_key, version), error)
            frame = encode_response(api_key, version, 5, response)
            assert carried(decode_response(api_key, version, frame)[1], place) == [error]


@given(st.data())
@settings(max_examples=150)
def test_an_answer_to_any_request_carries_the_error_if_it_has_a_place(data: st.DataObject) -> None:
    api_key, version = data.draw(st.sampled_from(CASES))
    request = data.draw(messages(MESSAGES[api_key][0], version))
    error = data.draw(st.sampled_from(sorted(ErrorCode)))
    response = errors.answer(api_key, version, request, error)
    frame = encode_response(api_key, version, 5, response)
    place = errors.refusal(api_key, version, error).place
    found = carried(decode_response(api_key, version, frame)[1], place)
    assert set(found) == ({error} if errors.has_place(api_key, version, request, error) else set())


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
    assert ".".join(errors.refusal(api_key, version, error).place) == place
    assert errors.is_at_top(api_key, version, error) is (place == "error_code")


@pytest.mark.parametrize(
    ("api_key", "version", "entry"),
    [
        (ApiKey.PRODUCE, 12, {"name": "t", "index": 7, "base_offset": -1}),
        (ApiKey.FETCH, 18, {"topic_id": ID, "partition_index": 7, "high_watermark": -1}),
        (ApiKey.LIST_OFFSETS, 7, {"name": "t", "partition_index": 7}),
        (ApiKey.METADATA, 13, {"name": "t", "topic_id": ID}),
        (ApiKey.OFFSET_COMMIT, 9, {"name": "t", "partition_index": 7}),
        (ApiKey.OFFSET_COMMIT, 10, {"topic_id": ID, "partition_index": 7}),
        (ApiKey.OFFSET_FETCH, 1, {"name": "t", "partition_index": 7, "committed_offset": -1}),
        (ApiKey.FIND_COORDINATOR, 3, {"node_id": -1, "port": -1}),
        (ApiKey.FIND_COORDINATOR, 6, {"key": "t", "node_id": -1, "port": -1}),
        (ApiKey.DELETE_TOPICS, 5, {"name": "t"}),
        (ApiKey.DELETE_TOPICS, 6, {"topic_id": ID}),
        (ApiKey.CREATE_ACLS, 3, {}),
        (ApiKey.DELETE_RECORDS, 2, {"name": "t", "partition_index": 7, "low_watermark": -1}),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 3, {"name": "t", "partition_index": 7}),
        (ApiKey.WRITE_TXN_MARKERS, 1, {"producer_id": 7, "name": "t", "partition_index": 7}),
        (ApiKey.ALTER_CONFIGS, 2, {"resource_type": 7, "resource_name": "t"}),
        (ApiKey.ALTER_REPLICA_LOG_DIRS, 2, {"topic_name": "t", "partition_index": 7}),
        (ApiKey.DESCRIBE_LOG_DIRS, 2, {}),
        (ApiKey.ELECT_LEADERS, 0, {"topic": "t", "partition_id": 7}),
        (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, {"user": "t"}),
    ],
)
def test_an_answer_repeats_what_was_asked_for(
    api_key: ApiKey, version: int, entry: dict[str, object]
) -> None:
    """As Apache Kafka's; all other fields have their defaults."""
    response: Any = errors.answer(api_key, version, one_of_each(api_key, version), WRONG)
    found: dict[str, object] = {}
    for name in errors.refusal(api_key, version, WRONG).place:
        fields = definition(type(response)).fields
        found |= {
            each.name: value
            for each in fields
            if (value := getattr(response, each.name)) != each.default and each.name != name
        }
        value = getattr(response, name)
        response = value if value == WRONG else value[0]
    assert found == entry


def test_an_entry_repeats_a_list_of_its_own() -> None:
    entity = (EntityData(entity_type="user", entity_name="alice"),)
    request = AlterClientQuotasRequest(entries=(RequestEntryData(entity=entity),))
    refused: Any = errors.answer(ApiKey.ALTER_CLIENT_QUOTAS, 1, request, WRONG, "why")
    assert refused.entries == (EntryData(entity=entity, error_code=WRONG, error_message="why"),)


def test_each_user_is_answered_once() -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=(ScramCredentialDeletion(name="bob"), ScramCredentialDeletion(name="bob", mechanism=1)),
        upsertions=(ScramCredentialUpsertion(name="bob"), ScramCredentialUpsertion(name="alice")),
    )
    refused: Any = errors.answer(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request, WRONG)
    assert [each.user for each in refused.results] == ["alice", "bob"]


@pytest.mark.parametrize("message", ["why", None])
def test_a_message_stands_beside_the_error(message: str | None) -> None:
    listed: Any = errors.answer(ApiKey.DESCRIBE_ACLS, 3, object(), WRONG, message)
    assert (listed.error_code, listed.error_message) == (WRONG, message)
    request = one_of_each(ApiKey.FIND_COORDINATOR, 6)
    found: Any = errors.answer(ApiKey.FIND_COORDINATOR, 6, request, WRONG, message)
    assert found.coordinators[0].error_message == message
    request = one_of_each(ApiKey.DELETE_GROUPS, 2)
    deleted: Any = errors.answer(ApiKey.DELETE_GROUPS, 2, request, WRONG, message)
    assert deleted.results[0].error_code == WRONG, "it has no message"


def test_a_request_for_nothing_has_no_place() -> None:
    request = MESSAGES[ApiKey.DELETE_GROUPS][0](groups_names=())
    assert not errors.has_place(ApiKey.DELETE_GROUPS, 2, request, WRONG)
    assert errors.answer(ApiKey.DELETE_GROUPS, 2, request, WRONG) == MESSAGES[ApiKey.DELETE_GROUPS][1]()


@pytest.mark.parametrize("api_key", REFUSALS, ids=lambda key: key.title)
def test_every_place_of_the_table_is_used_and_has_the_fields_that_it_names(api_key: ApiKey) -> None:
    used = []
    for version in VERSIONS[api_key]:
        for error in ErrorCode:
            place = errors.refusal(api_key, version, error)
            if place not in used:
                used.append(place)
                response = errors.answer(api_key, version, one_of_each(api_key, version), error)
                assert encode_response(api_key, version, 5, response)
    assert all(place in used for place in REFUSALS[api_key])


def test_the_entries_of_a_refusal_are_made_when_they_are_written() -> None:
    partitions = (OffsetCommitRequestPartition(partition_index=3),)
    topics = [OffsetCommitRequestTopic(name=f"topic-{number}", partitions=partitions) for number in range(9)]
    empty = OffsetCommitRequestTopic(name="empty", partitions=())
    request = OffsetCommitRequest(group_id="g", topics=(*topics, empty))
    refused: Any = errors.answer(ApiKey.OFFSET_COMMIT, 8, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert isinstance(refused.topics, Mapped)
    assert len(refused.topics) == 9
    assert [each.partitions[0].partition_index for each in refused.topics] == [3] * 9
