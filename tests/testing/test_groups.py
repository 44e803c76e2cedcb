"""The description of a group for people, and its lag."""

from __future__ import annotations

from kshim.testing.groups import Group, Member, TopicPartition, lag

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_a_group_names_its_members_and_their_partitions() -> None:
    members = (
        Member("billing-1", "billing", None, frozenset({"orders"}), (FIRST, SECOND)),
        Member("billing-2", "billing", "second", frozenset({"orders"}), ()),
    )
    group = Group("readers", "Stable", members)
    assert group.assigned == [FIRST, SECOND]
    assert str(group).splitlines() == [
        "group readers is Stable with 2 member(s)",
        "  billing-1 (client.id billing): orders-0, orders-1",
        "  billing-2 (client.id billing, group.instance.id second): no partition",
    ]


def test_a_partition_without_a_commit_counts_whole() -> None:
    assert lag({FIRST: 3}, {FIRST: 5, SECOND: 4}) == 6
    assert lag({FIRST: 5, SECOND: 4}, {FIRST: 5, SECOND: 4}) == 0
