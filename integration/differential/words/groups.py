"""The verbs about groups that histories are written in, and the situations in which many of them begin.

Each verb makes one step, or a list of them. `options` are those of Ask: over, wait, tolerated, since, until,
era, cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from integration.differential.words.history import (
    GROUP,
    MEMBER_ID_REQUIRED_SINCE,
    REBALANCE_MS,
    SESSION_MS,
    TOPIC,
    TRANSACTION,
    Answered,
    Ask,
    Epoch,
    Generation,
    HangUp,
    Id,
    Pause,
    ProducerId,
    Step,
    flat,
)
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from schemas.messages.delete_groups import DeleteGroupsRequest
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)


def subscription(text: str) -> bytes:
    """A consumer's subscription to TOPIC, with `text` as its user data."""
    return encode_subscription(ConsumerProtocolSubscription(topics=(TOPIC,), user_data=text.encode()))


def owning(*partitions: int) -> bytes:
    """The subscription of a cooperative consumer that owns these partitions of TOPIC."""
    return encode_subscription(
        ConsumerProtocolSubscription(topics=(TOPIC,), owned_partitions=_topics(partitions))
    )


def assigned(*partitions: int) -> bytes:
    """A consumer's assignment of these partitions of TOPIC."""
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=_topics(partitions)))


def _topics(partitions: Sequence[int]) -> tuple[TopicPartition, ...]:
    return (TopicPartition(topic=TOPIC, partitions=tuple(partitions)),) if partitions else ()


def join(
    client: str,
    *names: str,
    id: str | Id = "",
    instance: str | None = None,
    type: str = "consumer",
    protocols: Sequence[tuple[str, bytes]] | None = None,
    session_ms: int = SESSION_MS,
    rebalance_ms: int = REBALANCE_MS,
    reason: str | None = None,
    group: str = GROUP,
    tells: str = "",
    **options: Any,
) -> Ask:
    """JoinGroup as given: from v4 on a client's first one is answered with MEMBER_ID_REQUIRED.

    names: the protocols, by default only `range`. The metadata of each is a subscription to TOPIC whose user
    data is the client's name and `tells`.
    """
    if protocols is None:
        protocols = [(name, subscription(f"{client} {name}{tells}")) for name in names or ("range",)]
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=id,
        group_instance_id=instance,
        protocol_type=type,
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols),
        reason=reason,
    )
    return Ask(client=client, request=request, **options)


def rejoin(client: str, *names: str, id: str | Id | None = None, **kwargs: Any) -> Ask:
    """JoinGroup with the member's id."""
    return join(client, *names, id=Id(client) if id is None else id, **kwargs)


def enter(client: str, *names: str, wait: bool = True, **kwargs: Any) -> list[Ask]:
    """The steps of a new dynamic member: get a member id if one is required, and join."""
    only_old, only_new = MEMBER_ID_REQUIRED_SINCE - 1, MEMBER_ID_REQUIRED_SINCE
    return [
        join(client, *names, wait=wait, until=only_old, **kwargs),
        join(client, *names, since=only_new, **kwargs),
        rejoin(client, *names, wait=wait, since=only_new, **kwargs),
    ]


def sync(
    client: str,
    generation: int | Generation = 1,
    *,
    id: str | Id | None = None,
    instance: str | None = None,
    type: str | None = "consumer",
    protocol: str | None = "range",
    group: str = GROUP,
    assign: dict[str | Id, bytes] | None = None,
    **options: Any,
) -> Ask:
    """SyncGroup. assign: a client's name or an Id, and its assignment's bytes."""
    assignments = tuple(
        SyncGroupRequestAssignment(
            member_id=Id(owner) if isinstance(owner, str) else owner,
            assignment=data,
        )
        for owner, data in (assign or {}).items()
    )
    request = SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=Id(client) if id is None else id,
        group_instance_id=instance,
        protocol_type=type,
        protocol_name=protocol,
        assignments=assignments,
    )
    return Ask(client=client, request=request, **options)


def heartbeat(
    client: str,
    generation: int | Generation = 1,
    *,
    id: str | Id | None = None,
    instance: str | None = None,
    group: str = GROUP,
    **options: Any,
) -> Ask:
    request = HeartbeatRequest(
        group_id=group,
        generation_id=generation,
        member_id=Id(client) if id is None else id,
        group_instance_id=instance,
    )
    return Ask(client=client, request=request, **options)


def leave(
    client: str,
    *members: tuple[str | Id, str | None],
    group: str = GROUP,
    reason: str | None = None,
    **options: Any,
) -> Ask:
    """LeaveGroup of `members` (member id, instance id), by default of the client itself."""
    members = members or ((Id(client), None),)
    request = LeaveGroupRequest(
        group_id=group,
        member_id=members[0][0],
        members=tuple(
            MemberIdentity(member_id=member_id, group_instance_id=instance, reason=reason)
            for member_id, instance in members
        ),
    )
    return Ask(client=client, request=request, **options)


Place = tuple[str, int]


def commit(
    client: str,
    generation: int | Generation = -1,
    *,
    id: str | Id | None = None,
    instance: str | None = None,
    offsets: dict[Place, int] | None = None,
    metadata: str | None = "where I was",
    leader_epoch: int = -1,
    retention_ms: int = -1,
    group: str = GROUP,
    **options: Any,
) -> Ask:
    """OffsetCommit; without a generation, as a client that is no member."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, index), offset in ({(TOPIC, 0): 5} if offsets is None else offsets).items():
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
        )
    if id is None:
        id = "" if isinstance(generation, int) and generation < 0 else Id(client)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=id,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=tuple(
            OffsetCommitRequestTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()
        ),
    )
    return Ask(client=client, request=request, **options)


def fetch(
    client: str,
    places: Sequence[Place] | None = ((TOPIC, 0),),
    *,
    groups: Sequence[tuple[str, Sequence[Place] | None]] = (),
    group: str = GROUP,
    require_stable: bool = False,
    member: tuple[str | None, int] = (None, -1),
    **options: Any,
) -> Ask:
    """OffsetFetch of some places or, with None and from v2 on, of all; from v8 on of several `groups` too."""
    if places is None:
        options.setdefault("since", 2)

    def grouped(places: Sequence[Place] | None) -> dict[str, list[int]] | None:
        topics: dict[str, list[int]] | None = None if places is None else {}
        for topic, index in places or ():
            assert topics is not None
            topics.setdefault(topic, []).append(index)
        return topics

    def of_group(group: str, places: Sequence[Place] | None) -> OffsetFetchRequestGroup:
        topics = grouped(places)
        return OffsetFetchRequestGroup(
            group_id=group,
            member_id=member[0],
            member_epoch=member[1],
            topics=None
            if topics is None
            else tuple(
                OffsetFetchRequestTopics(name=name, partition_indexes=tuple(indexes))
                for name, indexes in topics.items()
            ),
        )

    topics = grouped(places)
    request = OffsetFetchRequest(
        group_id=group,
        topics=None
        if topics is None
        else tuple(
            OffsetFetchRequestTopic(name=name, partition_indexes=tuple(indexes))
            for name, indexes in topics.items()
        ),
        groups=tuple(of_group(*each) for each in groups) or (of_group(group, places),),
        require_stable=require_stable,
    )
    return Ask(client=client, request=request, **options)


def describe(client: str = "admin", *groups: str, authorized: bool = False, **options: Any) -> Ask:
    request = DescribeGroupsRequest(groups=groups or (GROUP,), include_authorized_operations=authorized)
    return Ask(client=client, request=request, **options)


def list_groups(
    client: str = "admin", *, states: Sequence[str] = (), types: Sequence[str] = (), **options: Any
) -> Ask:
    request = ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
    return Ask(client=client, request=request, **options)


def delete(client: str = "admin", *groups: str, **options: Any) -> Ask:
    return Ask(client=client, request=DeleteGroupsRequest(groups_names=groups or (GROUP,)), **options)


def find_coordinator(client: str = "admin", *keys: str, key_type: int = 0, **options: Any) -> Ask:
    keys = keys or (GROUP,)
    request = FindCoordinatorRequest(key=keys[0], key_type=key_type, coordinator_keys=keys)
    return Ask(client=client, request=request, **options)


def offset_delete(client: str, *places: Place, group: str = GROUP, **options: Any) -> Ask:
    topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(OffsetDeleteRequestPartition(partition_index=index))
    request = OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            OffsetDeleteRequestTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()
        ),
    )
    return Ask(client=client, request=request, **options)


def init_producer(
    client: str,
    *,
    transaction: str | None = TRANSACTION,
    timeout_ms: int = 60_000,
    id: int | ProducerId = -1,
    epoch: int | Epoch = -1,
    **options: Any,
) -> Ask:
    request = InitProducerIdRequest(
        transactional_id=transaction,
        transaction_timeout_ms=timeout_ms,
        producer_id=id,
        producer_epoch=epoch,
    )
    return Ask(client=client, request=request, **options)


def add_partitions(
    client: str,
    *places: Place,
    transaction: str = TRANSACTION,
    id: int | ProducerId | None = None,
    epoch: int | Epoch | None = None,
    **options: Any,
) -> Ask:
    """AddPartitionsToTxn as clients send it; versions above v3 are for brokers."""
    topics: dict[str, list[int]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(index)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transaction,
        v3_and_below_producer_id=ProducerId(client) if id is None else id,
        v3_and_below_producer_epoch=Epoch(client) if epoch is None else epoch,
        v3_and_below_topics=tuple(
            AddPartitionsToTxnTopic(name=name, partitions=tuple(indexes)) for name, indexes in topics.items()
        ),
    )
    return Ask(client=client, request=request, newest=3, **options)


def add_offsets(
    client: str,
    *,
    transaction: str = TRANSACTION,
    id: int | ProducerId | None = None,
    epoch: int | Epoch | None = None,
    group: str = GROUP,
    **options: Any,
) -> Ask:
    request = AddOffsetsToTxnRequest(
        transactional_id=transaction,
        producer_id=ProducerId(client) if id is None else id,
        producer_epoch=Epoch(client) if epoch is None else epoch,
        group_id=group,
    )
    return Ask(client=client, request=request, **options)


def txn_commit(
    client: str,
    generation: int | Generation = -1,
    *,
    member: str | Id = "",
    instance: str | None = None,
    offsets: dict[Place, int] | None = None,
    metadata: str | None = "in a transaction",
    transaction: str = TRANSACTION,
    id: int | ProducerId | None = None,
    epoch: int | Epoch | None = None,
    group: str = GROUP,
    **options: Any,
) -> Ask:
    """TxnOffsetCommit; without a generation, as a producer that does not name a member."""
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, index), offset in ({(TOPIC, 0): 15} if offsets is None else offsets).items():
        topics.setdefault(topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=metadata
            )
        )
    request = TxnOffsetCommitRequest(
        transactional_id=transaction,
        group_id=group,
        producer_id=ProducerId(client) if id is None else id,
        producer_epoch=Epoch(client) if epoch is None else epoch,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        topics=tuple(
            TxnOffsetCommitRequestTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()
        ),
    )
    return Ask(client=client, request=request, **options)


def end_transaction(
    client: str,
    committed: bool = True,
    *,
    transaction: str = TRANSACTION,
    id: int | ProducerId | None = None,
    epoch: int | Epoch | None = None,
    **options: Any,
) -> Ask:
    request = EndTxnRequest(
        transactional_id=transaction,
        producer_id=ProducerId(client) if id is None else id,
        producer_epoch=Epoch(client) if epoch is None else epoch,
        committed=committed,
    )
    return Ask(client=client, request=request, **options)


def pause(ms: int, tolerated: str = "") -> Pause:
    return Pause(ms, tolerated)


def answered(*clients: str) -> Answered:
    return Answered(clients)


def hang_up(connection: str) -> HangUp:
    return HangUp(connection)


def tolerate(difference: str, step: Ask) -> Ask:
    """Return the step, marked as one at which kshim is meant to answer differently."""
    return replace(step, tolerated=difference)


# ---- situations that many histories begin with


def stable(leader: str, *followers: str, names: Sequence[str] = ("range",), **timeouts: int) -> list[Step]:
    """A stable group: generation 1 for the leader alone, generation 2 with followers."""
    first: list[Step] = [
        *enter(leader, *names, **timeouts),
        sync(leader, protocol=names[0], assign={leader: b"for " + leader.encode()}),
    ]
    if not followers:
        return first
    everybody = (leader, *followers)
    return [
        *first,
        *flat(enter(name, *names, wait=False, **timeouts) for name in followers),
        pause(100),
        rejoin(leader, *names, **timeouts),
        answered(*followers),
        *(sync(name, 2, protocol=names[0], wait=False) for name in followers),
        sync(leader, 2, protocol=names[0], assign={name: b"for " + name.encode() for name in everybody}),
        answered(*followers),
    ]


def stable_statics(*clients: str, names: Sequence[str] = ("range",), **timeouts: int) -> list[Step]:
    """A stable group of static members, each with its name as its instance id; the first one leads."""
    leader, *followers = clients
    steps: list[Step] = [
        join(leader, *names, instance=leader, **timeouts),
        sync(leader, instance=leader, protocol=names[0], assign={leader: b"for " + leader.encode()}),
    ]
    if not followers:
        return steps
    return [
        *steps,
        *(join(name, *names, instance=name, wait=False, **timeouts) for name in followers),
        pause(100),
        rejoin(leader, *names, instance=leader, **timeouts),
        answered(*followers),
        *(sync(name, 2, instance=name, protocol=names[0], wait=False) for name in followers),
        sync(
            leader,
            2,
            instance=leader,
            protocol=names[0],
            assign={name: b"for " + name.encode() for name in clients},
        ),
        answered(*followers),
    ]
