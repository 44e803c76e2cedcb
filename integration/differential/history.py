"""A history as data: steps of named clients, the same at every version of the protocol.

    History(
        "a follower that joins again unchanged is answered at once",
        cases=[46],
        steps=[*stable("alice", "bob"), rejoin("bob"), heartbeat("alice")],
    )

Every client has a name, which is its client id, and one connection. `Id("bob")` stands in a request for the
member id that the server gave to bob last, `Id("bob", 1)` for the first one it gave. `pause` lets time pass
and looks which requests are still without an answer.

An *era* stands for the versions of one time: era 3 has v3 of every API, or the next one that exists. Fields
that a version does not have are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemas.api_key import ApiKey
from schemas.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from schemas.delete_groups import DeleteGroupsRequest
from schemas.describe_groups import DescribeGroupsRequest
from schemas.find_coordinator import FindCoordinatorRequest
from schemas.heartbeat import HeartbeatRequest
from schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.list_groups import ListGroupsRequest
from schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from schemas.registry import VERSIONS
from schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

ERAS = range(11)
GROUP = "<group>"
"""In a request: the group that this history has for itself. What follows it in a string stays."""
TOPIC, OTHER_TOPIC, NO_TOPIC = "orders", "payments", "nowhere"
"""Two topics with two partitions each, and one that does not exist."""
SESSION_MS, REBALANCE_MS = 30_000, 30_000
"""Where a history says nothing else, no time runs out."""
MEMBER_ID_REQUIRED_SINCE = 4


@dataclass(frozen=True)
class Id:
    """In a request: the member id that `owner` was given last, or as the `number`-th, from 1."""

    owner: str
    number: int = 0


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A request. Below era `since` it is left out, and so it is above era `until`."""

    client: str
    request: Any
    over: str = ""
    wait: bool = True
    tolerated: str = ""
    since: int = 0
    until: int = ERAS[-1]

    @property
    def connection(self) -> str:
        return self.over or self.client

    @property
    def api_key(self) -> ApiKey:
        return API_KEYS[type(self.request)]

    def version(self, era: int) -> int:
        versions = VERSIONS[self.api_key]
        return min(max(era, versions[0]), versions[-1])


@dataclass(frozen=True)
class Pause:
    """Let time pass, then look who waits. 0: only look."""

    ms: int
    tolerated: str = ""


@dataclass(frozen=True)
class Answered:
    """Wait until nothing that these clients asked is without an answer."""

    clients: tuple[str, ...]


Step = Ask | Pause | Answered

API_KEYS = {
    OffsetCommitRequest: ApiKey.OFFSET_COMMIT,
    OffsetFetchRequest: ApiKey.OFFSET_FETCH,
    FindCoordinatorRequest: ApiKey.FIND_COORDINATOR,
    JoinGroupRequest: ApiKey.JOIN_GROUP,
    HeartbeatRequest: ApiKey.HEARTBEAT,
    LeaveGroupRequest: ApiKey.LEAVE_GROUP,
    SyncGroupRequest: ApiKey.SYNC_GROUP,
    DescribeGroupsRequest: ApiKey.DESCRIBE_GROUPS,
    ListGroupsRequest: ApiKey.LIST_GROUPS,
    DeleteGroupsRequest: ApiKey.DELETE_GROUPS,
}


@dataclass(frozen=True)
class History:
    """cases: of the coordinator's list of cases, by number. pair: which two servers (`pairs`). eras: at which
    versions; those that would be the same requests again are left out by `eras_that_differ`."""

    title: str
    cases: Sequence[int]
    steps: Sequence[Step | Sequence[Step]]
    eras: Iterable[int] = ERAS
    pair: str = "plain"

    def at(self, era: int) -> list[Step]:
        """The steps as they are at one era."""
        return [
            step for step in flat(self.steps) if not isinstance(step, Ask) or step.since <= era <= step.until
        ]

    def eras_that_differ(self) -> list[int]:
        """The eras without those in which every request has the version it had before."""
        seen: set[tuple[int, ...]] = set()
        eras = []
        for era in self.eras:
            versions = tuple(step.version(era) for step in self.at(era) if isinstance(step, Ask))
            if versions not in seen:
                seen.add(versions)
                eras.append(era)
        return eras


def flat(steps: Iterable[Step | Sequence[Step]]) -> list[Step]:
    """Verbs may stand for several steps."""
    result: list[Step] = []
    for step in steps:
        result.extend(step if isinstance(step, (list, tuple)) else [step])
    return result


def subscription(text: str) -> bytes:
    """A consumer's subscription to TOPIC, with `text` as its user data."""
    return encode_subscription(ConsumerProtocolSubscription(topics=(TOPIC,), user_data=text.encode()))


# -- the verbs; `options` are those of Ask: over, wait, tolerated, since, until


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
    **options: Any,
) -> Ask:
    """JoinGroup, as it is: at v4 and above a first one is told MEMBER_ID_REQUIRED. `names`: protocols whose
    metadata is a subscription to TOPIC that tells the client; `range` alone where there are none."""
    if protocols is None:
        protocols = [(name, subscription(f"{client} {name}")) for name in names or ("range",)]
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=id,  # type: ignore[arg-type]
        group_instance_id=instance,
        protocol_type=type,
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols),
        reason=reason,
    )
    return Ask(client=client, request=request, **options)


def rejoin(client: str, *names: str, id: str | Id | None = None, **kwargs: Any) -> Ask:
    """JoinGroup of a member that has its id."""
    return join(client, *names, id=Id(client) if id is None else id, **kwargs)


def enter(client: str, *names: str, wait: bool = True, **kwargs: Any) -> list[Ask]:
    """What a new dynamic member does: take an id where one is required, and join."""
    only_old, only_new = MEMBER_ID_REQUIRED_SINCE - 1, MEMBER_ID_REQUIRED_SINCE
    return [
        join(client, *names, wait=wait, until=only_old, **kwargs),
        join(client, *names, since=only_new, **kwargs),
        rejoin(client, *names, wait=wait, since=only_new, **kwargs),
    ]


def sync(
    client: str,
    generation: int = 1,
    *,
    id: str | Id | None = None,
    instance: str | None = None,
    type: str | None = "consumer",
    protocol: str | None = "range",
    group: str = GROUP,
    assign: dict[str | Id, bytes] | None = None,
    **options: Any,
) -> Ask:
    """SyncGroup. assign: a client's name, or an Id, and its bytes."""
    assignments = tuple(
        SyncGroupRequestAssignment(
            member_id=Id(owner) if isinstance(owner, str) else owner,  # type: ignore[arg-type]
            assignment=data,
        )
        for owner, data in (assign or {}).items()
    )
    request = SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=Id(client) if id is None else id,  # type: ignore[arg-type]
        group_instance_id=instance,
        protocol_type=type,
        protocol_name=protocol,
        assignments=assignments,
    )
    return Ask(client=client, request=request, **options)


def heartbeat(
    client: str,
    generation: int = 1,
    *,
    id: str | Id | None = None,
    instance: str | None = None,
    group: str = GROUP,
    **options: Any,
) -> Ask:
    request = HeartbeatRequest(
        group_id=group,
        generation_id=generation,
        member_id=Id(client) if id is None else id,  # type: ignore[arg-type]
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
    """LeaveGroup of `members` (member id, instance id), of the client itself where there are none."""
    members = members or ((Id(client), None),)
    request = LeaveGroupRequest(
        group_id=group,
        member_id=members[0][0],  # type: ignore[arg-type]
        members=tuple(
            MemberIdentity(member_id=member_id, group_instance_id=instance, reason=reason)  # type: ignore[arg-type]
            for member_id, instance in members
        ),
    )
    return Ask(client=client, request=request, **options)


Place = tuple[str, int]


def commit(
    client: str,
    generation: int = -1,
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
    """OffsetCommit; without a generation, that of somebody who is no member."""
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
        id = Id(client) if generation >= 0 else ""
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=id,  # type: ignore[arg-type]
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
    """OffsetFetch of some places or, with None and from v2 on, of all. From v8 on of several `groups`."""
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


def pause(ms: int, tolerated: str = "") -> Pause:
    return Pause(ms, tolerated)


def answered(*clients: str) -> Answered:
    return Answered(clients)


def tolerate(difference: str, step: Ask) -> Ask:
    """The same step, where kshim is meant to answer otherwise."""
    return replace(step, tolerated=difference)


# -- situations that many histories begin with


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
