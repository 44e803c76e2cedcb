"""A server that has much to load listens at once, says that its groups are loading, and then serves them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from integration.support.awaiting import wait_until
from integration.support.server import Server
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

pytestmark = pytest.mark.kshim_only("how long Kafka is loading is another matter")

PARTITIONS = 1_000
GROUPS = [f"group-{number}" for number in range(100)]
LOADED_S = 30
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def offset_of(group: int, partition: int) -> int:
    return group * PARTITIONS + partition


def commit_all(wire: Wire) -> None:
    """Commit an offset for each partition in each group."""
    topic = CreatableTopic(name="wide", num_partitions=PARTITIONS, replication_factor=1)
    (created,) = wire.ask(5, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)).topics
    assert created.error_code == ErrorCode.NONE
    for number, group_id in enumerate(GROUPS):
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset_of(number, index))
            for index in range(PARTITIONS)
        )
        topics = (OffsetCommitRequestTopic(name="wide", partitions=partitions),)
        wire.request(7, OffsetCommitRequest(group_id=group_id, topics=topics))
        wire.frame()


def committed(wire: Wire, group_id: str) -> OffsetFetchResponse:
    response: OffsetFetchResponse = wire.ask(7, OffsetFetchRequest(group_id=group_id, topics=None))
    return response


@contextmanager
def connected(server: Server) -> Iterator[Wire]:
    with Wire(server.host, server.port, timeout_s=LOADED_S) as wire:
        yield wire


@pytest.fixture
def large(new_server: Callable[..., Server]) -> Server:
    """A server with 100,000 offsets, killed."""
    server = new_server().start()
    with connected(server) as wire:
        commit_all(wire)
    server.kill()
    return server


def test_early_requests_are_refused_until_all_is_loaded(large: Server) -> None:
    large.restart()
    with connected(large) as wire:
        assert wire.ask(0, ListGroupsRequest()).error_code == LOADING
    assert large.stop() == 0, "a stop does not wait for what is left to load"
    large.restart()
    with connected(large) as wire:
        found = wire.ask(0, FindCoordinatorRequest(key=GROUPS[-1]))
        listed = wire.ask(0, ListGroupsRequest())
        beaten = wire.ask(0, HeartbeatRequest(group_id=GROUPS[-1], generation_id=1, member_id="nobody"))
        early = [group_id for group_id in GROUPS if committed(wire, group_id).error_code == LOADING]
        assert (found.error_code, found.port) == (ErrorCode.NONE, large.port)
        assert listed.error_code == LOADING
        assert beaten.error_code == ErrorCode.NONE
        assert early

        answers: dict[str, OffsetFetchResponse] = {}

        def all_are_served() -> bool:
            for group_id in GROUPS:
                if group_id not in answers and (answer := committed(wire, group_id)).error_code != LOADING:
                    answers[group_id] = answer
            return len(answers) == len(GROUPS)

        wait_until(all_are_served, LOADED_S, "all groups")
        for number, group_id in enumerate(GROUPS):
            (topic,) = answers[group_id].topics
            offsets = {each.partition_index: each.committed_offset for each in topic.partitions}
            assert offsets == {index: offset_of(number, index) for index in range(PARTITIONS)}, group_id
        assert wire.ask(0, ListGroupsRequest()).error_code == ErrorCode.NONE
    assert large.stop() == 0
    assert "Traceback" not in large.report()
