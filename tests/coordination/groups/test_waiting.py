"""The words about what a group waits for."""

from __future__ import annotations

from tests.coordination.groups.history import REBALANCE_MS, History


def test_a_group_that_does_not_exist(history: History) -> None:
    assert history.coordinator.waits_for("group") is None


def test_a_stable_group_waits_for_nobody(history: History) -> None:
    history.stable(2)
    waits = history.coordinator.waits_for("group")
    assert waits is not None
    assert (waits["state"], waits["generation"], len(waits["members"])) == ("Stable", 1, 2)
    assert (waits["because"], waits["began_ms"], waits["until_ms"]) == ("", None, None)
    assert [waits["to_join"], waits["to_join_first"], waits["to_sync"]] == [[], [], []]


def test_members_that_have_not_joined_again_are_named_with_the_reason(history: History) -> None:
    first, second = history.stable(2)
    new = history.client()
    new.enter()
    first.join()
    waits = history.coordinator.waits_for("group")
    assert waits is not None
    assert (waits["state"], waits["to_join"]) == ("PreparingRebalance", [second.member_id])
    assert waits["because"] == f"a member joined: {new.member_id}"
    assert (waits["began_ms"], waits["until_ms"]) == (history.now_ms, history.now_ms + REBALANCE_MS)


def test_an_id_that_was_handed_out_is_named(history: History) -> None:
    new = history.client()
    new.join()
    waits = history.coordinator.waits_for("group")
    assert waits is not None
    assert (waits["state"], waits["to_join_first"]) == ("Empty", [new.member_id])


def test_members_that_have_not_synced_are_named(history: History) -> None:
    (client,) = history.stable(1)
    client.join()
    waits = history.coordinator.waits_for("group")
    assert waits is not None
    assert (waits["state"], waits["to_sync"]) == ("CompletingRebalance", [client.member_id])
