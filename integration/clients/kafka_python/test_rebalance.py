"""Three unmodified consumers share a topic: they join, leave, crash, freeze, and outlive the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from integration.support.awaiting import wait_until
from integration.support.clients import ASSIGNORS, CAN_REJOIN, POLL_MS, Admin, new_consumer
from integration.support.server import Server
from integration.support.story import telling

PARTITIONS = 6
SESSION_TIMEOUT_S = 6


@pytest.mark.parametrize("assignor", CAN_REJOIN)
def test_members_join_leave_and_crash(server: Server, topic: str, tmp_path: Path, assignor: str) -> None:
    with telling(server.bootstrap, topic, PARTITIONS, assignor, tmp_path) as story:
        first = story.join("first")
        story.wait_shared(first)
        second, third = story.join("second"), story.join("third")
        story.wait_shared(first, second, third)
        second.leave()
        story.wait_shared(first, third, timeout_s=SESSION_TIMEOUT_S - 1)  # it left, it did not time out
        third.kill()
        story.wait_shared(first, timeout_s=3 * SESSION_TIMEOUT_S)
        fourth = story.join("fourth")
        story.wait_shared(first, fourth)


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_the_group_outlives_the_server(
    new_server: Callable[..., Server], topic: str, tmp_path: Path, assignor: str
) -> None:
    """The clients notice nothing: same members, same generation, no record and no offset lost."""
    own_server = new_server("--set", "group.initial.rebalance.delay.ms=2000").start()
    with telling(own_server.bootstrap, topic, PARTITIONS, assignor, tmp_path) as story:
        members = [story.join(name) for name in ("first", "second", "third")]
        story.wait_shared(*members)
        story.feed.wait_more(20)
        generations = story.generations()
        before = story.admin.describe_group(story.group_id)
        for _ in range(2):
            own_server.kill()
            own_server.restart()
            story.feed.wait_more(20)
            story.watch.wait_look()
        story.reconnect()
        story.wait_shared(*members)
        assert story.generations() == generations
        after = story.admin.describe_group(story.group_id)
        assert {m.member_id: m.assignment for m in after.members} == {
            m.member_id: m.assignment for m in before.members
        }


def test_a_member_that_was_away_too_long_comes_back(server: Server, topic: str, tmp_path: Path) -> None:
    """Its session times out while it is stopped: its next commit is refused, and it joins as a new member."""
    with telling(server.bootstrap, topic, PARTITIONS, "range", tmp_path) as story:
        first, second = story.join("first"), story.join("second")
        story.wait_shared(first, second)
        second.freeze()
        wait_until(lambda: len(first.owned) == PARTITIONS, 3 * SESSION_TIMEOUT_S, "first owns everything")
        story.feed.wait_more(20)
        second.thaw()
        story.wait_shared(first, second)


@pytest.mark.kshim_only("Kafka reads the LeaveGroup only after the JoinGroup before it is answered")
@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_close_while_joining(server: Server, admin: Admin, topic: str, tmp_path: Path, assignor: str) -> None:
    """Closing a member takes no time, even while its JoinGroup waits for a member that does not poll."""
    with telling(server.bootstrap, topic, PARTITIONS, assignor, tmp_path) as story:
        idle = new_consumer(
            server.bootstrap,
            topic,
            group_id=story.group_id,
            client_id="idle",
            partition_assignment_strategy=[ASSIGNORS[assignor]],
            session_timeout_ms=30_000,
            heartbeat_interval_ms=300,
        )
        wait_until(
            lambda: (idle.poll(timeout_ms=POLL_MS), idle.assignment())[1], 20, "the idle member's assignment"
        )
        joining = story.join("joining")
        wait_until(
            lambda: admin.describe_group(story.group_id).state == "PreparingRebalance",
            20,
            "a waiting JoinGroup",
        )
        joining.interrupt()
        joining.wait_gone()
        assert "interrupted" in joining.said
        assert 0 <= joining.close_s < 2
        idle.close()
        story.wait_shared(story.join("next"))
