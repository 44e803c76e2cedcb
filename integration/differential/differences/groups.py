"""Differences of groups that no history can show."""

from __future__ import annotations

from integration.differential.differences.guest import CLOSED, NO_ANSWER, Guest, error_of
from integration.differential.differences.member import Member, coordinated, protocol
from integration.differential.differences.scenario import difference
from integration.differential.playing.player import PATIENT
from kshim.coordination.groups.offered import MOST_NAMES
from kshim.coordination.groups.subscriptions import MOST_TOPICS
from schemas.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from schemas.messages.delete_groups import DeleteGroupsRequest
from schemas.messages.join_group import JoinGroupRequestProtocol
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
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

API_VERSIONS, COMMIT, DELETE = 3, 8, 2
TOO_LARGE = 1_200_000
"""More bytes than a record may have by default (message.max.bytes)."""


@difference("D-full-group-waits-for-nobody", apache_kafka=NO_ANSWER, kshim="NONE")
def a_full_group_in_which_all_but_the_refused_have_joined(guest: Guest) -> str:
    """group.max.size is 2."""
    coordinated(guest)
    alice, bob, carol = (Member(guest, name) for name in ("alice", "bob", "carol"))
    alice.enter()
    bob.take_id()
    carol.take_id()
    bob.send_join()
    guest.rest(via="bob")
    alice.send_join()
    guest.rest(via="alice")
    carol.send_join()
    assert error_of(carol.hear_join()) == "GROUP_MAX_SIZE_REACHED"
    return error_of(alice.hear_join())


@difference("D-static-member-too-large", apache_kafka="UNKNOWN_SERVER_ERROR", kshim="NONE")
def a_static_member_comes_back_with_too_much(guest: Guest) -> str:
    coordinated(guest)
    alice = Member(guest, "alice", group_instance_id="alice")
    alice.enter()
    alice.id = ""
    alice.send_join(protocols=(protocol(b"x" * TOO_LARGE),))
    return error_of(alice.hear_join())


@difference("D-parked-heartbeat", apache_kafka="NONE", kshim="REBALANCE_IN_PROGRESS")
def a_rebalance_begins_after_a_heartbeat(guest: Guest) -> str:
    """Return the answer to a heartbeat that a client that can wait sent before a rebalance begins."""
    coordinated(guest)
    alice, bob = Member(guest, "alice"), Member(guest, "bob")
    assert guest.error(API_VERSIONS, PATIENT, via="alice") == "NONE"
    alice.enter()
    bob.take_id()
    alice.send_heartbeat()
    guest.until_read(via="alice")
    bob.send_join()
    return alice.hear_heartbeat()


@difference("D-refused-commit", apache_kafka="NONE", kshim="GROUP_ID_NOT_FOUND")
def deleting_a_group_whose_only_commit_was_refused(guest: Guest) -> str:
    guest.create("t")
    group = coordinated(guest)
    assert guest.error(COMMIT, committing(guest, "x" * 5000)) == "OFFSET_METADATA_TOO_LARGE"
    return guest.error(DELETE, DeleteGroupsRequest(groups_names=(group,)))


@difference("D-many-protocols", apache_kafka="MEMBER_ID_REQUIRED", kshim="INCONSISTENT_GROUP_PROTOCOL")
def a_member_with_more_protocols_than_a_group_counts(guest: Guest) -> str:
    coordinated(guest)
    names = [f"p{number}" for number in range(MOST_NAMES + 1)]
    alice = Member(guest, "alice", protocols=tuple(JoinGroupRequestProtocol(name=name) for name in names))
    alice.send_join()
    return error_of(alice.hear_join())


@difference("D-many-subscribed-topics", apache_kafka="NONE", kshim="GROUP_SUBSCRIBED_TO_TOPIC")
def deleting_an_offset_while_a_member_names_very_many_topics(guest: Guest) -> str:
    """Names of no bytes suffice, as nobody looks into a subscription before that."""
    guest.create("t")
    group = coordinated(guest)
    topics = encode_subscription(ConsumerProtocolSubscription(topics=("",) * (MOST_TOPICS + 1)))
    Member(guest, "alice", protocols=(protocol(topics),)).enter()
    partitions = (OffsetDeleteRequestPartition(partition_index=0),)
    request = OffsetDeleteRequest(
        group_id=group, topics=(OffsetDeleteRequestTopic(name=guest.name("t"), partitions=partitions),)
    )
    return error_of(guest.answer(0, request).topics[0].partitions[0])


def committing(guest: Guest, metadata: str) -> OffsetCommitRequest:
    """A commit of one offset of topic t."""
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=metadata
    )
    topics = (OffsetCommitRequestTopic(name=guest.name("t"), partitions=(partition,)),)
    return OffsetCommitRequest(group_id=guest.name("g"), topics=topics)


@difference("D-large-answer", apache_kafka="NONE", kshim=CLOSED)
def an_answer_of_70_megabytes(guest: Guest) -> str:
    guest.create("t")
    group_id = coordinated(guest)
    assert guest.error(COMMIT, committing(guest, "m" * 4_000)) == "NONE"
    group = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    return guest.error(8, OffsetFetchRequest(groups=(group,) * 17_000))
