"""A group as people are shown it."""

from __future__ import annotations

from tests.coordination.groups.history import History


def test_a_group_that_does_not_exist(history: History) -> None:
    assert (history.coordinator.see("group"), history.coordinator.group_ids()) == (None, [])


def test_a_group_is_shown_with_its_members(history: History) -> None:
    first, second = history.stable(2)
    seen = history.coordinator.see("group")
    assert seen is not None
    assert (seen.state, seen.leader) == ("Stable", first.member_id)
    assert [member.member_id for member in seen.members] == [first.member_id, second.member_id]
    assert list(seen.partitions) == []
    assert history.coordinator.group_ids() == ["group"]


def test_a_shard_that_is_loading_shows_nothing(history: History) -> None:
    history.stable(1)
    shard = history.coordinator.shard_for("group")
    history.coordinator.unload(shard, 0)
    history.coordinator.begin_load(shard)
    assert (history.coordinator.see("group"), history.coordinator.group_ids()) == (None, [])
