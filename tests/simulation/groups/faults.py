"""All that can go wrong or happen in between: one table, from which one entry is picked at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
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
from schemas.messages.offset_fetch import OffsetFetchRequestGroup
from schemas.messages.sync_group import SyncGroupRequestAssignment
from schemas.records.end_txn_marker import EndTxnMarker
from tests.simulation.groups.checks import FOREIGN, MONOTONE_TOPIC, assignment_of
from tests.simulation.groups.client import Client, Phase
from tests.simulation.groups.world import GROUPS, SHARDS, World

MOST_CLIENTS = 6
ADMIN = "admin"


def happens(world: World) -> None:
    """Make one of them happen, at random."""
    faults, weights = zip(*(_TABLE + _STEERING if world.parks else _TABLE), strict=True)
    fault: Callable[[World], None]
    (fault,) = world.chance.choices(faults, weights)
    fault(world)


# ---- consumers


def _client_crashes(world: World) -> None:
    """A consumer crashes; it may come back, and may then remember its member id."""
    client = _any_client(world)
    if client is None:
        return
    world.client_crashes += 1
    world.end(client)
    if world.chance.random() < 0.7:
        again = world.newcomer(client.profile, world.chance.choice((0, 200, 5_000, 15_000)))
        again.subscription = client.subscription
        _remember(world, again, client)


def _remember(world: World, again: Client, client: Client) -> None:
    known = world.chance.choice(("nothing", "nothing", "its id", "everything"))
    if known != "nothing":
        again.member_id = client.member_id
    if known == "everything" and client.generation_id >= 0:
        again.generation_id, again.protocol_name = client.generation_id, client.protocol_name
        again.position, again._plan = dict(client.position), client._plan
        again.connection = world.connect(again)
        resumed = Phase.RUN if client.position else Phase.SYNC
        again.phase = resumed if again.connection else Phase.FIND


def _client_stalls(world: World) -> None:
    client = _any_client(world)
    if client is not None:
        stall_ms = world.chance.choice((500, 3_000, 12_000, 40_000))
        world.note(client.name, f"stalls for {stall_ms} ms")
        client.stalled_until_ms = world.clock.now_ms + stall_ms


def _connection_breaks(world: World) -> None:
    client = _any_client(world)
    if client is not None and client.connection is not None:
        world.note(client.name, "is disconnected")
        world.disconnect(client)


def _client_leaves(world: World) -> None:
    client = _any_client(world)
    if client is not None and client.member_id and client.connection is not None:
        world.submit(client.connection.node, client.name, client.leave_request(), 5)
        world.end(client)


def _client_changes_its_mind(world: World) -> None:
    """It changes its subscription, and rejoins."""
    client = _any_client(world)
    if client is not None and client.phase is Phase.RUN:
        client.subscription = b"%d" % world.chance.randint(0, 3)
        client.go(Phase.JOIN)


def _client_arrives(world: World) -> None:
    if len(world.live()) < MOST_CLIENTS:
        world.newcomer()


def _old_request_arrives(world: World) -> None:
    """An old request arrives again, early or late; a commit only if it was the last request."""
    if not world.old:
        return
    recent = world.chance.random() < 0.5
    client, request, version = world.old[-1] if recent else world.chance.choice(world.old)
    leader = world.leaders[world.shard_for(request.group_id)]
    if leader is not None and type(request) is not OffsetCommitRequest:
        world.note(client.name, f"again, to {leader.name}", request)
        world.submit(leader, client.name, request, version)


def _stranger_commits(world: World) -> None:
    """A commit that must be refused: it would move every offset back."""
    client = _any_client(world)
    if client is None:
        return
    member_id, generation_id = world.chance.choice(
        (
            ("stranger", max(client.generation_id, 1)),
            (client.member_id or "stranger", 0),
            (client.member_id or "stranger", client.generation_id + 1_000),
        )
    )
    request = replace(
        client.commit_request(),
        member_id=member_id,
        generation_id_or_member_epoch=generation_id,
        topics=_commit_of(MONOTONE_TOPIC, 0),
    )
    _administer(world, request, 9)


def _anyone_asks_anything(world: World) -> None:
    """A request with any ids, generation and protocols that have ever existed; it commits nothing."""
    if not world.old:
        return
    choice = world.chance.choice
    old = [choice(world.old)[0] for _ in range(4)]
    profile = replace(
        old[0].profile,
        group_instance_id=choice((None, "", old[1].profile.group_instance_id)),
        session_timeout_ms=choice((5_999, 6_000)),
        assignors=choice((old[1].profile.assignors, ())),
    )
    anyone = Client(world, "anyone", profile, member_id=choice((old[2].member_id, "", "stranger")))
    anyone.generation_id = choice((-1, 0, 1, old[3].generation_id, old[3].generation_id + 1))
    request = choice(
        (anyone.join_request, anyone.sync_request, anyone.heartbeat_request, anyone.leave_request)
    )()
    _administer(world, replace(request, group_id=choice((request.group_id, ""))), 5)


def _member_commits_at_any_time(world: World) -> None:
    """A commit by a member with its true id and generation, whether it has synced or not."""
    client = _any_client(world)
    if client is not None and client.member_id and client.generation_id > 0:
        _administer(world, replace(client.commit_request(), topics=_commit_of("another", 1)), 9)


def _follower_assigns(world: World) -> None:
    """A follower sends assignments, which must not count."""
    client = _any_client(world)
    leader = world.leaders[world.shard_for(client.profile.group_id)] if client else None
    if client is None or leader is None:
        return
    group = leader.groups().get(client.profile.group_id)
    if group is not None and group.leader not in (None, client.member_id):
        entry = SyncGroupRequestAssignment(member_id=client.member_id, assignment=assignment_of((FOREIGN,)))
        _administer(world, replace(client.sync_request(), assignments=(entry,)), 5)


# ---- brokers and the journal


def _journal_is_slow(world: World) -> None:
    world.journal.slowest_ms = world.chance.choice((0, 5, 200, 3_000))


def _journal_fails(world: World) -> None:
    world.note("journal", "will fail")
    world.journal.failing = world.chance.randint(1, 2)


def _journal_is_unreadable(world: World) -> None:
    world.journal.unreadable = 1


def _shard_moves(world: World) -> None:
    world.move(world.chance.randrange(SHARDS))


def _broker_crashes(world: World) -> None:
    world.crash(world.chance.choice(world.nodes))


# ---- administrators


def _someone_looks(world: World) -> None:
    group_id = world.chance.choice(GROUPS)
    _administer(world, DescribeGroup(group_id), 6)
    _administer(world, OffsetFetchRequestGroup(group_id=group_id, topics=None), 9)
    for node in world.nodes:
        node.coordinator.list_groups(ListGroupsRequest())


def _group_is_deleted(world: World) -> None:
    _administer(world, DeleteGroup(world.chance.choice(GROUPS)), 2)


def _topic_is_deleted(world: World) -> None:
    world.note(ADMIN, "deletes the topic")
    for node in world.nodes:
        node.delete_topics(MONOTONE_TOPIC)


def _static_member_is_removed(world: World) -> None:
    identities = tuple(MemberIdentity(group_instance_id=name) for name in ("static0", "static1"))
    _administer(world, LeaveGroupRequest(group_id=world.chance.choice(GROUPS), members=identities), 5)


def _group_is_steered(world: World) -> None:
    """A rebalance, an expiry or a fencing that somebody asks for; a member that may be gone by now."""
    group_id, chance = world.chance.choice(GROUPS), world.chance
    client = _any_client(world)
    member_id = client.member_id if client is not None and client.member_id else "stranger"
    asked = (
        ForceRebalance(group_id),
        ExpireMember(group_id if client is None else client.profile.group_id, member_id),
        FenceMember(group_id, chance.choice(("static0", "static1"))),
    )
    _administer(world, chance.choice(asked), 0)


def _time_moves_ahead(world: World) -> None:
    """For the groups' members it is as if they had sent heartbeats meanwhile, if they are connected."""
    for node in world.nodes:
        node.hasten()
    members = {
        (each.profile.group_id, each.member_id) for each in world.live() if each.connection is not None
    }
    by_ms = world.chance.choice((100, 6_000, 60_000))
    world.note(ADMIN, f"moves time ahead by {by_ms} ms")
    for node in world.nodes:
        node.keep_sessions(members, by_ms)
    world.clock.now_ms += by_ms


def _offset_is_reset(world: World) -> None:
    """A commit without a generation, which only an empty group accepts."""
    topics = _commit_of("another", world.chance.randint(0, 9))
    _administer(world, OffsetCommitRequest(group_id=world.chance.choice(GROUPS), topics=topics), 9)


def _zombie_commits(world: World) -> None:
    """A commit of a producer's old epoch, which must be refused."""
    transactor = world.chance.choice(world.transactors)
    if transactor.epoch:
        request = transactor.request(epoch=transactor.epoch - 1)
        world.submit_to_leader(transactor.group_id, "zombie", request, 5)


def _zombie_ends_a_transaction(world: World) -> None:
    """A marker of an old epoch, or of a replaced coordinator, which must be refused too."""
    transactor = world.chance.choice(world.transactors)
    epochs = [transactor.epoch, transactor.coordinator_epoch]
    older = world.chance.randrange(2)
    if epochs[older]:
        epochs[older] -= 1
        committed = world.chance.random() < 0.5
        marker = EndTxnMarker(transactor.producer_id, epochs[0], committed, epochs[1], world.clock.now_ms)
        world.end_transaction(transactor, marker)


def _transactor_stalls(world: World) -> None:
    """Its transaction may stay open for longer than offsets are kept."""
    transactor = world.chance.choice(world.transactors)
    world.note(transactor.name, "stalls")
    transactor.stalled_until_ms = world.clock.now_ms + world.chance.choice((5_000, 200_000))


def _stray_marker_comes(world: World) -> None:
    """A marker of a producer that has committed nothing here."""
    transactor = world.chance.choice(world.transactors)
    marker = EndTxnMarker(99, 0, world.chance.random() < 0.5, 0, world.clock.now_ms)
    world.end_transaction(transactor, marker)


def _pending_offset_is_deleted(world: World) -> None:
    topic = OffsetDeleteRequestTopic(
        name="another",
        partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in range(2)),
    )
    _administer(world, OffsetDeleteRequest(group_id=world.chance.choice(GROUPS), topics=(topic,)), 0)


def _other_topic_is_deleted(world: World) -> None:
    world.note(ADMIN, "deletes the other topic")
    for node in world.nodes:
        node.delete_topics("another")


def _administer(world: World, request: Any, version: int) -> None:
    leader = world.leaders[world.shard_for(request.group_id)]
    if leader is not None:
        world.note(ADMIN, f"asks {leader.name}", request)
        world.submit(leader, ADMIN, request, version)


def _any_client(world: World) -> Client | None:
    live = world.live()
    return world.chance.choice(live) if live else None


def _commit_of(topic: str, offset: int) -> tuple[OffsetCommitRequestTopic, ...]:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)


_TABLE = (
    (_client_crashes, 5),
    (_client_stalls, 4),
    (_connection_breaks, 4),
    (_client_leaves, 2),
    (_client_changes_its_mind, 2),
    (_client_arrives, 6),
    (_old_request_arrives, 6),
    (_stranger_commits, 2),
    (_member_commits_at_any_time, 2),
    (_follower_assigns, 3),
    (_anyone_asks_anything, 4),
    (_journal_is_slow, 3),
    (_journal_fails, 2),
    (_journal_is_unreadable, 0.5),
    (_shard_moves, 2),
    (_broker_crashes, 1),
    (_someone_looks, 1),
    (_group_is_deleted, 1),
    (_topic_is_deleted, 0.5),
    (_static_member_is_removed, 1),
    (_offset_is_reset, 1),
    (_zombie_commits, 1),
    (_zombie_ends_a_transaction, 1),
    (_transactor_stalls, 1),
    (_stray_marker_comes, 0.5),
    (_pending_offset_is_deleted, 0.5),
    (_other_topic_is_deleted, 0.3),
)
_STEERING = (
    (_group_is_steered, 3),
    (_time_moves_ahead, 0.5),
)
"""Only where heartbeats are parked: so the histories of the others stay as they were."""
