"""The leader answers; other brokers name it (KIP-320, KIP-951).

The facts are Apache Kafka 4.2's.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kshim.answering import Broker
from kshim.api.fetch import fetch
from kshim.api.list_offsets import list_offsets
from kshim.api.offset_for_leader_epoch import offset_for_leader_epoch
from kshim.cluster import Partition
from kshim.cluster.leadership import fault_in_leadership
from kshim.fetching.sessions import FetchSessions
from schemas.error_code import ErrorCode
from schemas.messages.fetch import FetchPartition, LeaderIdAndEpoch, ReplicaState
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.api.fetches import request, wanted
from tests.api.harness import NOW_MS, ask, batch, collect, context, create, new_broker, result

NOT_LEADER, FENCED, UNKNOWN = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
)
PARTITION = Partition(0, 7, leader=2, leader_epoch=5, replicas=(1, 2), isr=(1, 2))


def at(broker: Broker, node_id: int) -> Broker:
    """Have another broker of the cluster answer."""
    return replace(broker, node_id=node_id, fetch_sessions=FetchSessions())


@pytest.fixture
def broker() -> Broker:
    """Broker 1 of 3. Topic t has leader 2, leader epoch 5, and replicas 1 and 2."""
    broker = new_broker(brokers=3)
    topic = create(broker, "t")
    (made,) = topic.partitions
    moved = replace(made, leader=2, leader_epoch=5, replicas=(1, 2), isr=(1, 2))
    broker.cluster.topics["t"] = broker.cluster._by_id[topic.topic_id] = replace(topic, partitions=(moved,))
    for epoch in (0, 0, 3, 5):
        appended = broker.log.append(made.partition_no, batch(b"v"), leader_epoch=epoch, now_ms=NOW_MS)
        assert result(appended)
    return broker


@pytest.mark.parametrize(
    ("node_id", "epoch", "fault", "fault_of_reader"),
    [
        (2, -1, ErrorCode.NONE, ErrorCode.NONE),
        (2, 5, ErrorCode.NONE, ErrorCode.NONE),
        (2, 4, FENCED, FENCED),
        (2, 6, UNKNOWN, UNKNOWN),
        (1, -1, NOT_LEADER, ErrorCode.NONE),
        (1, 5, NOT_LEADER, ErrorCode.NONE),
        (1, 4, FENCED, FENCED),
        (1, 6, UNKNOWN, UNKNOWN),
        (3, -1, NOT_LEADER, NOT_LEADER),
        (3, 4, NOT_LEADER, NOT_LEADER),
    ],
)
def test_a_replica_knows_the_epoch_another_broker_nothing(
    broker: Broker, node_id: int, epoch: int, fault: ErrorCode, fault_of_reader: ErrorCode
) -> None:
    there = at(broker, node_id)
    assert fault_in_leadership(there.node_id, PARTITION, epoch) is fault
    assert fault_in_leadership(there.node_id, PARTITION, epoch, any_replica=True) is fault_of_reader


def error_of_fetch(broker: Broker, version: int) -> int:
    (topic,) = ask(fetch, broker, request(wanted(0, 0)), version).responses
    return int(topic.partitions[0].error_code)


def test_consumers_may_read_from_any_replica_since_v11(broker: Broker) -> None:
    assert [error_of_fetch(at(broker, 1), version) for version in (4, 10, 11, 12)] == [6, 6, 0, 0]
    assert [error_of_fetch(at(broker, 3), version) for version in (4, 10, 11, 12)] == [6, 6, 6, 6]


@pytest.mark.parametrize(("version", "is_told"), [(12, False), (16, True)])
def test_a_client_that_is_sent_away_is_told_where_to_go(broker: Broker, version: int, is_told: bool) -> None:
    topic_id = broker.cluster.topics["t"].topic_id
    stale = FetchPartition(partition=0, fetch_offset=0, current_leader_epoch=4, partition_max_bytes=100)
    for node_id, error in ((3, NOT_LEADER), (1, FENCED)):
        there = at(broker, node_id)
        response = ask(fetch, there, request(stale, topic_id=topic_id), version)
        (part,) = response.responses[0].partitions
        leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=5) if is_told else LeaderIdAndEpoch()
        assert (part.error_code, part.current_leader) == (error, leader)
        here = there.endpoint(context(version), 2)
        assert here is not None
        places = [(2, here.host, here.port)] if is_told else []
        assert [(node.node_id, node.host, node.port) for node in response.node_endpoints] == places


@pytest.mark.parametrize(
    ("epoch", "error", "is_told"), [(-1, NOT_LEADER, True), (4, FENCED, True), (5, UNKNOWN, False)]
)
def test_a_replica_is_told_the_leader_but_not_its_address(
    broker: Broker, epoch: int, error: ErrorCode, is_told: bool
) -> None:
    topic_id = broker.cluster.topics["t"].topic_id
    wanted = FetchPartition(partition=0, fetch_offset=0, current_leader_epoch=epoch, partition_max_bytes=100)
    asked = request(wanted, topic_id=topic_id, replica_state=ReplicaState(replica_id=7))
    response = ask(fetch, at(broker, 2), asked, 16)
    (part,) = response.responses[0].partitions
    leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=5) if is_told else LeaderIdAndEpoch()
    assert (part.error_code, part.current_leader, response.node_endpoints) == (error, leader, ())


def test_a_client_with_a_later_epoch_is_told_nothing(broker: Broker) -> None:
    topic_id = broker.cluster.topics["t"].topic_id
    ahead = FetchPartition(partition=0, fetch_offset=0, current_leader_epoch=9, partition_max_bytes=100)
    response = ask(fetch, at(broker, 2), request(ahead, topic_id=topic_id), 16)
    (part,) = response.responses[0].partitions
    assert (part.error_code, part.current_leader, response.node_endpoints) == (
        UNKNOWN,
        LeaderIdAndEpoch(),
        (),
    )


def test_a_waiting_fetch_is_answered_at_once_when_the_leader_moves(broker: Broker) -> None:
    there = at(broker, 2)
    topic = broker.cluster.topics["t"]
    known = FetchPartition(partition=0, fetch_offset=4, current_leader_epoch=5, partition_max_bytes=100)
    asked = request(known, max_wait_ms=500, session_epoch=0)
    seen = collect(fetch(there, context(12), asked))
    assert seen == []
    (part,) = topic.partitions
    broker.cluster.topics["t"] = replace(topic, partitions=(replace(part, leader=1, leader_epoch=6),))
    broker.log.wake(part.partition_no)
    assert seen[0].responses[0].partitions[0].error_code == FENCED


def ends(broker: Broker, epoch: int, **more: int) -> tuple[int, int, int]:
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, **more)
    topics = (OffsetForLeaderTopic(topic="t", partitions=(asked,)),)
    answer = ask(offset_for_leader_epoch, broker, OffsetForLeaderEpochRequest(topics=topics), 4)
    (end,) = answer.topics[0].partitions
    return int(end.error_code), end.leader_epoch, end.end_offset


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(-1, (-1, -1)), (0, (0, 2)), (2, (0, 2)), (3, (3, 3)), (4, (3, 3)), (5, (5, 4)), (6, (-1, -1))],
)
def test_where_an_epoch_ends(broker: Broker, epoch: int, end: tuple[int, int]) -> None:
    assert ends(at(broker, 2), epoch) == (0, *end)


def test_a_leader_that_has_appended_nothing_yet_ends_the_epochs_before_it(broker: Broker) -> None:
    topic = broker.cluster.topics["t"]
    (part,) = topic.partitions
    broker.cluster.topics["t"] = replace(topic, partitions=(replace(part, leader_epoch=8),))
    assert [ends(at(broker, 2), epoch) for epoch in (5, 7, 8)] == [(0, 5, 4), (0, 5, 4), (0, 8, 4)]


def test_epochs_are_told_by_the_leader_only(broker: Broker) -> None:
    assert ends(at(broker, 1), 0) == (NOT_LEADER, -1, -1)
    assert ends(at(broker, 2), 0, current_leader_epoch=4) == (FENCED, -1, -1)
    assert ends(at(broker, 2), 0, current_leader_epoch=6) == (UNKNOWN, -1, -1)


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (2, 0, None),
        (3, 0, (0, 2)),
        (3, 3, None),
        (4, 3, (3, 3)),
        (3, 4, (3, 3)),
        (4, 5, None),
        (9, 5, (5, 4)),
    ],
)
def test_where_the_logs_part(
    broker: Broker, offset: int, last_epoch: int, diverging: tuple[int, int] | None
) -> None:
    asked = FetchPartition(
        partition=0, fetch_offset=offset, last_fetched_epoch=last_epoch, partition_max_bytes=100
    )
    (part,) = ask(fetch, at(broker, 2), request(asked), 12).responses[0].partitions
    assert part.error_code == 0
    assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (diverging or (-1, -1))
    assert bool(part.records) == (diverging is None and offset < 4)
    (part,) = ask(fetch, at(broker, 2), request(asked, isolation_level=1), 12).responses[0].partitions
    assert part.aborted_transactions == (() if diverging is None else None)


@pytest.mark.parametrize(("timestamp", "epoch"), [(-1, 5), (-2, 0), (-3, 0)])
def test_list_offsets_tells_the_epoch_of_what_it_found(broker: Broker, timestamp: int, epoch: int) -> None:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = (ListOffsetsTopic(name="t", partitions=(asked,)),)
    answer = ask(list_offsets, at(broker, 2), ListOffsetsRequest(replica_id=-1, topics=topics), 7)
    assert answer.topics[0].partitions[0].leader_epoch == epoch
    answer = ask(list_offsets, at(broker, 1), ListOffsetsRequest(replica_id=-1, topics=topics), 7)
    assert answer.topics[0].partitions[0].error_code == NOT_LEADER
