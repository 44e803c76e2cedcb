"""Groups of consumers that rebalance in a test's own time, eagerly or cooperatively."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kshim.coordination.groups.rebalance import SHORTEST_DELAY_MS
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from tests.coordination.groups.history import Client, History, protocols

Owned = Mapping[Client, Sequence[int]]


def consumer(history: History, name: str, **fields: object) -> Client:
    """An eager consumer of topic t."""
    client = history.client(client_id=name, **fields)
    owns(client)
    return client


def owns(client: Client, *partitions: int, topics: Iterable[str] = ("t",)) -> None:
    """Set the subscription and the owned partitions of `client`'s next JoinGroup."""
    subscription = ConsumerProtocolSubscription(topics=tuple(topics), owned_partitions=_topics(partitions))
    client.protocols = protocols("range", metadata=encode_subscription(subscription))


def assignment(*partitions: int) -> bytes:
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=_topics(partitions)))


def all_join(history: History, *clients: Client) -> None:
    """Have all members join that have not joined yet in this rebalance."""
    for client in clients:
        group = history.groups().get(client.group_id)
        member = None if group is None else group.members.get(client.member_id)
        if member is None or member.parked_join is None:
            client.enter()
    if history.group().state == "PreparingRebalance":
        history.sleep(SHORTEST_DELAY_MS)  # the first generation is not made at once


def all_sync(plan: Owned) -> None:
    """The leader comes last."""
    given = {client: assignment(*partitions) for client, partitions in plan.items()}
    leader = next(iter(plan)).history.group().leader
    for client in plan:
        if client.member_id != leader:
            client.sync()
    next(client for client in plan if client.member_id == leader).sync(given)


def rebalance(history: History, plan: Owned) -> None:
    """A whole rebalance, at one moment."""
    all_join(history, *plan)
    all_sync(plan)


def _topics(partitions: Sequence[int]) -> tuple[TopicPartition, ...]:
    return (TopicPartition(topic="t", partitions=tuple(partitions)),) if partitions else ()
