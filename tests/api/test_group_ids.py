"""Group ids of any length, empty, or not in UTF-8."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kshim.callers import Client
from kshim.configs.endpoint import Endpoint
from kshim.network.dispatch import answer
from kshim.testing.wire import payload
from kshim.turns import Signal
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from schemas.registry import decode_response
from tests.api.groups import Groups, join
from tests.api.harness import create, result

HERE = Endpoint("kshim.example", 9092)
CALLER = Client("/127.0.0.1", Endpoint("127.0.0.1", 50_000), HERE)
PLACE = "PLACE"


@pytest.fixture
def groups() -> Groups:
    groups = Groups()
    create(groups.broker, "topic")
    return groups


def ask(groups: Groups, api_key: ApiKey, request: Any, name: bytes, version: int = 8) -> Any:
    """The answer to a request in which `name` replaces PLACE."""
    frame = payload(version, request, "x" * len(name)).replace(PLACE.encode(), name)
    reply = answer(replace(groups.broker, node_id=0), frame, CALLER, Signal())
    groups.runtime.end_turn()
    return decode_response(api_key, version, result(reply))[1]


def commit(group_id: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topic = OffsetCommitRequestTopic(name="topic", partitions=(partition,))
    return OffsetCommitRequest(group_id=group_id, topics=(topic,))


@pytest.mark.parametrize(
    ("name", "read"),
    [(b"a\xffbcd", "a\ufffdbcd"), (b"a\xed\xa0\x80d", "a\ufffdd"), (b"\xff" * 5, "\ufffd" * 5)],
)
def test_bytes_that_are_no_utf_8(groups: Groups, name: bytes, read: str) -> None:
    """Apache Kafka 4.2's answers: the group exists under the name that was decoded."""
    committed = ask(groups, ApiKey.OFFSET_COMMIT, commit(PLACE), name)
    assert committed.topics[0].partitions[0].error_code == ErrorCode.NONE
    fetch = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=PLACE, topics=None),))
    (fetched,) = ask(groups, ApiKey.OFFSET_FETCH, fetch, name).groups
    assert (fetched.group_id, fetched.topics[0].partitions[0].committed_offset) == (read, 7)
    assert ask(groups, ApiKey.JOIN_GROUP, join(PLACE), name).error_code == ErrorCode.MEMBER_ID_REQUIRED
    listed = groups.ask(ListGroupsRequest()).groups
    assert [group.group_id for group in listed] == [read]


@pytest.mark.parametrize("length", [249, 250, 1_000, 32_767])
def test_any_length(groups: Groups, length: int) -> None:
    assert groups.ask(join("g" * length)).error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert groups.ask(commit("g" * length), 8).topics[0].partitions[0].error_code == ErrorCode.NONE


def test_none(groups: Groups) -> None:
    """[17] [136]: nobody can join it, but it may have offsets."""
    assert groups.ask(join("")).error_code == ErrorCode.INVALID_GROUP_ID
    assert groups.ask(commit(""), 8).topics[0].partitions[0].error_code == ErrorCode.NONE
