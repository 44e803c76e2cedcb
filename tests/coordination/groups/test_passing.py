"""A generation that passes at once: whose SyncGroups wait for the next one, and for how long."""

from collections.abc import Iterable

import pytest

from kshim.coordination.groups.passing import HOLD_MS
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from schemas.error_code import ErrorCode
from tests.coordination.groups.history import SESSION_MS, Client, History, protocols


def owns(client: Client, *partitions: int) -> None:
    """From now on `client` tells in its JoinGroups that it owns these."""
    subscription = ConsumerProtocolSubscription(topics=("t",), owned_partitions=_topics(partitions))
    client.protocols = protocols("range", metadata=encode_subscription(subscription))


def assignment(*partitions: int) -> bytes:
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=_topics(partitions)))


def _topics(partitions: Iterable[int]) -> tuple[TopicPartition, ...]:
    return (TopicPartition(topic="t", partitions=tuple(partitions)),) if partitions else ()


@pytest.fixture
def clients(history: History) -> list[Client]:
    """`old` owns 0 to 3 and leads, `same` owns 4; `new` joins them. All have joined, none has synced."""
    old, same = history.stable(2)
    owns(old, 0, 1, 2, 3)
    owns(same, 4)
    new = history.client()
    owns(new)
    for client in (new, old, same):
        client.enter()
    return [old, same, new]


def sync(clients: list[Client], *assignments: bytes) -> list[int]:
    """Let all send SyncGroup, the leader last."""
    plan = dict(zip(clients, assignments, strict=True))
    return [*(client.sync() for client in clients[1:]), clients[0].sync(plan)][::-1]


def told(history: History, token: int) -> ErrorCode:
    return ErrorCode(history.answer(token).error_code)


def test_who_gets_nothing_new_waits_for_who_gives_up(history: History, clients: list[Client]) -> None:
    old, same, new = clients
    to_old, to_new, to_same = sync(clients, assignment(0, 1), assignment(4), assignment())
    assert history.answer(to_old).assignment == assignment(0, 1)
    assert history.is_parked(to_same)
    assert history.is_parked(to_new)
    owns(old, 0, 1)
    old.join()
    assert told(history, to_same) == told(history, to_new) == ErrorCode.REBALANCE_IN_PROGRESS
    joins = [same.join(), new.join()]
    assert not any(map(history.is_parked, joins)), "the next generation begins"


def test_nobody_waits_for_long(history: History, clients: list[Client]) -> None:
    _, to_new, to_same = sync(clients, assignment(0, 1), assignment(4), assignment())
    history.sleep(HOLD_MS - 1)
    assert history.is_parked(to_same)
    history.sleep(1)
    assert history.answer(to_same).assignment == assignment(4)
    assert history.answer(to_new).assignment == assignment()


def test_who_gets_something_new_does_not_wait(history: History, clients: list[Client]) -> None:
    _, to_new, to_same = sync(clients, assignment(0, 1), assignment(4), assignment(5))
    assert history.answer(to_new).assignment == assignment(5)
    assert history.is_parked(to_same)


def test_a_member_that_the_leader_has_left_out_waits_too(history: History, clients: list[Client]) -> None:
    _, to_new, _ = sync(clients, assignment(0, 1), assignment(4), b"")
    assert history.is_parked(to_new)


def test_nobody_waits_if_nobody_gives_up(history: History, clients: list[Client]) -> None:
    tokens = sync(clients, assignment(0, 1, 2, 3), assignment(4), assignment())
    assert {told(history, token) for token in tokens} == {ErrorCode.NONE}


@pytest.mark.parametrize("unread", [b"", b"\x00", b"nonsense"])
def test_nobody_waits_if_a_subscription_is_unread(history: History, unread: bytes) -> None:
    old, new = history.stable(2)
    owns(old, 0, 1)
    new.protocols = protocols("range", metadata=unread)
    for client in (old, new):
        client.enter()
    tokens = sync([old, new], assignment(0), assignment())
    assert {told(history, token) for token in tokens} == {ErrorCode.NONE}


def test_a_late_sync_waits_too(history: History, clients: list[Client]) -> None:
    old, same, new = clients
    old.sync({old: assignment(0, 1), same: assignment(4), new: assignment()})
    token = same.sync()
    assert history.is_parked(token)
    history.sleep(HOLD_MS)
    assert history.answer(token).assignment == assignment(4)
    assert history.answer(new.sync()).assignment == assignment()


def test_who_leaves_or_is_gone_is_told(history: History, clients: list[Client]) -> None:
    _, to_new, to_same = sync(clients, assignment(0, 1), assignment(4), assignment())
    clients[2].leave()
    assert told(history, to_new) == ErrorCode.UNKNOWN_MEMBER_ID
    assert told(history, to_same) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_shard_that_is_given_up_answers(history: History, clients: list[Client]) -> None:
    _, to_new, to_same = sync(clients, assignment(0, 1), assignment(4), assignment())
    history.resign()
    assert told(history, to_same) == told(history, to_new) == ErrorCode.NOT_COORDINATOR


def test_the_session_begins_with_the_answer(history: History, clients: list[Client]) -> None:
    sync(clients, assignment(0, 1), assignment(4), assignment())
    history.sleep(HOLD_MS)
    for client in clients:
        client.heartbeat()
    history.sleep(SESSION_MS - 1)
    assert len(history.group().members) == 3


def test_it_can_be_switched_off() -> None:
    history = History(group_heartbeat_park_enable=False)
    old, new = history.stable(2)
    owns(old, 0, 1)
    owns(new)
    for client in (old, new):
        client.enter()
    tokens = sync([old, new], assignment(0), assignment())
    assert {told(history, token) for token in tokens} == {ErrorCode.NONE}
