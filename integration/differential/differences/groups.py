"""Differences of groups that no history can show."""

from __future__ import annotations

from integration.differential.differences.guest import NO_ANSWER, Guest, error_of
from integration.differential.differences.member import Member, coordinated, protocol
from integration.differential.differences.scenario import difference
from schemas.messages.delete_groups import DeleteGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

COMMIT, DELETE = 8, 2
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


@difference("D-refused-commit", apache_kafka="NONE", kshim="GROUP_ID_NOT_FOUND")
def deleting_a_group_whose_only_commit_was_refused(guest: Guest) -> str:
    guest.create("t")
    group = coordinated(guest)
    assert guest.error(COMMIT, committing(guest, "x" * 5000)) == "OFFSET_METADATA_TOO_LARGE"
    return guest.error(DELETE, DeleteGroupsRequest(groups_names=(group,)))


def committing(guest: Guest, metadata: str) -> OffsetCommitRequest:
    """A commit of one offset of topic t."""
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=metadata
    )
    topics = (OffsetCommitRequestTopic(name=guest.name("t"), partitions=(partition,)),)
    return OffsetCommitRequest(group_id=guest.name("g"), topics=topics)
