"""Random histories from a seed: members that behave and that do not, old and made-up requests, restarts.

After every step `invariants.check` checks every group, and the history checks that no request is answered
twice. These tests add: a restart restores what was known before, and once all clients fall silent every group
empties and every request has its answer.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup
from kshim.coordination.groups.states import State
from kshim.coordination.groups.timers import ShardTimer
from schemas.error_code import ErrorCode
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.coordination.groups.history import Client, History, protocols

pytestmark = pytest.mark.thorough

GROUPS = ("one", "two", "")
PROTOCOLS = (
    protocols("range"),
    protocols("range", metadata=b"other"),
    protocols("range", "sticky"),
    protocols("sticky", "range"),
    protocols("sticky"),
)
LONGEST_WAIT_MS = 400_000
RETENTIONS = ((1, 5_000), (10_080, 600_000))
"""The offsets' retention in minutes, and the interval between checks in ms."""


class Crowd:
    """A few clients that share groups, and a source of randomness."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.retention_minutes, self.check_interval_ms = self.chance.choice(RETENTIONS)
        self.history = History(
            offsets_retention_minutes=self.retention_minutes,
            offsets_retention_check_interval_ms=self.check_interval_ms,
            group_max_size=self.chance.choice((2, 3, 1_000)),
            group_initial_rebalance_delay_ms=self.chance.choice((0, 3_000)),
        )
        self.clients = [self.new_client() for _ in range(6)]
        self.ids = ["", "stranger"]

    def new_client(self) -> Client:
        choice = self.chance.choice
        return self.history.client(
            choice(GROUPS[:2]),
            group_instance_id=choice((None, None, None, "i", "j")),
            session_timeout_ms=choice((6_000, 10_000, 30_000)),
            rebalance_timeout_ms=choice((0, 5_000, 20_000)),
            protocol_type=choice(("consumer", "consumer", "consumer", "connect")),
            protocols=choice(PROTOCOLS),
        )

    def step(self) -> None:
        """Make one thing happen."""
        steps = (
            (self.behave, 12),
            (self.sleep, 6),
            (self.beat, 4),
            (self.misbehave, 4),
            (self.return_without_id, 2),
            (self.change_mind, 1),
            (self.leave, 1),
            (self.administer, 1),
            (self.restart, 0.3),
        )
        (happens,) = self.chance.choices([step for step, _ in steps], [weight for _, weight in steps])
        happens()
        self.ids += {client.member_id for client in self.clients} - {*self.ids}

    def behave(self) -> None:
        """A client does what a real one would do next."""
        client = self.chance.choice(self.clients)
        group = self.history.groups().get(client.group_id)
        member = group and group.members.get(client.member_id)
        if not group or not member:
            client.member_id = client.member_id if group and client.member_id in group.pending_join else ""
            client.join(self.chance.choice((3, 9)))
        elif group.state is State.PREPARING_REBALANCE or client.generation_id != group.generation:
            client.join()
        elif group.leader == client.member_id:
            client.sync(dict.fromkeys(self.clients, b"x"))
        else:
            client.sync()

    def misbehave(self) -> None:
        """A request with any ids and generations that have ever existed."""
        choice = self.chance.choice
        client = choice(self.clients)
        stale = self.history.client(
            choice(GROUPS),
            member_id=choice(self.ids),
            group_instance_id=choice((None, "i", "j", "")),
            generation_id=choice((-1, 0, 1, client.generation_id, client.generation_id + 1)),
            protocols=choice((*PROTOCOLS, ())),
            protocol_type=client.protocol_type,
            session_timeout_ms=choice((5_999, 6_000)),
        )
        choice((stale.join, stale.sync, stale.heartbeat, stale.leave, lambda: stale.commit(1)))()

    def sleep(self) -> None:
        self.history.sleep(self.chance.choice((0, 1, 500, 3_000, 6_000, 20_000)))

    def beat(self) -> None:
        for client in self.clients:
            if self.chance.random() < 0.9:
                client.heartbeat()
                client.commit(self.chance.randrange(100))

    def return_without_id(self) -> None:
        self.chance.choice(self.clients).member_id = ""

    def change_mind(self) -> None:
        self.clients[self.chance.randrange(len(self.clients))] = self.new_client()

    def leave(self) -> None:
        identities = tuple(
            MemberIdentity(member_id=client.member_id, group_instance_id=client.group_instance_id)
            for client in self.chance.sample(self.clients, 2)
        )
        self.history.ask(LeaveGroupRequest(group_id=self.chance.choice(GROUPS), members=identities))

    def administer(self) -> None:
        group_id = self.chance.choice(GROUPS)
        self.history.ask(DescribeGroup(group_id))
        self.history.ask(DeleteGroup(group_id))
        topic = OffsetDeleteRequestTopic(
            name="topic", partitions=(OffsetDeleteRequestPartition(partition_index=0),)
        )
        self.history.ask(OffsetDeleteRequest(group_id=self.chance.choice(GROUPS), topics=(topic,)))
        self.history.list_groups()
        self.history.delete_topics(self.chance.choice(("topic", "other")))

    def restart(self) -> None:
        """Afterwards the coordinator knows what is durable, and no more."""
        before = hard_state(self.history)
        self.history.restart()
        assert hard_state(self.history) == before


def hard_state(history: History) -> list[object]:
    return [(state.groups, state.offsets) for state in history.hard_states()]


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 250))
def test_any_history(seed: int, steps: int) -> None:
    crowd = Crowd(seed)
    for _ in range(steps):
        crowd.step()
    history = crowd.history
    before = hard_state(history)
    history.sleep(LONGEST_WAIT_MS)
    assert history.parked == set(), "all requests are answered in the end"
    for group in history.groups().values():
        assert group.state is State.EMPTY
        assert group.pending_join == set()
    assert {type(timer) for timer in history.coordinator._timers._deadlines_ms} == {ShardTimer}
    if crowd.retention_minutes * 60_000 > LONGEST_WAIT_MS:
        assert [offsets for _, offsets in hard_state(history)] == [offsets for _, offsets in before]
    crowd.restart()
    history.sleep(crowd.retention_minutes * 60_000 + crowd.check_interval_ms)
    assert history.groups() == {}, "no group is kept for ever"
    assert hard_state(history) == [({}, {})] * history.partitions


def test_a_seed_is_a_whole_history() -> None:
    def run() -> tuple[object, ...]:
        crowd = Crowd(42)
        for _ in range(300):
            crowd.step()
        return crowd.history.journal, crowd.history.answers, crowd.history.rebalances

    assert run() == run()


def test_histories_reach_the_rare_cases() -> None:
    """The histories above are worth something: they form generations, fence members and refuse requests."""
    errors: set[int] = set()
    generations = 0
    for seed in range(20):
        crowd = Crowd(seed)
        for _ in range(250):
            crowd.step()
        errors |= {getattr(answer, "error_code", 0) for answer in crowd.history.answers.values()}
        generations += len(crowd.history.rebalances)
    assert generations > 200
    assert errors >= {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.NON_EMPTY_GROUP,
    }
