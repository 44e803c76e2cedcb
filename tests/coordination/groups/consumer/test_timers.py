"""Members that are silent, or do not give up partitions in time; cases 86 to 90."""

from __future__ import annotations

from dataclasses import replace

from kshim.coordination.groups.consumer.member import MemberState
from kshim.coordination.groups.timers import TimerKey, TimerKind
from schemas.error_code import ErrorCode
from tests.coordination.groups.consumer.world import FOO, G, Given, World, held, owned, shown, stable, target

UNREVOKED = MemberState.UNREVOKED_PARTITIONS
SESSION, REVOCATION = TimerKind.SESSION, TimerKind.REVOCATION


def rebalancing() -> World:
    """Member a has been asked to give up partitions for b."""
    world = World()
    world.join("a", "foo", rebalance_timeout_ms=12_000)
    world.join("b", "foo")
    world.heartbeat("a", 2)
    assert world.member("a").state is UNREVOKED
    return world


def test_86_the_time_to_give_up_partitions() -> None:
    world = World()
    world.join("a", "foo", rebalance_timeout_ms=12_000)
    assert world.due_in(REVOCATION, "a") is None
    world.join("b", "foo")
    answer = world.heartbeat("a", 2)
    kept = shown(answer)
    assert kept is not None
    assert world.due_in(REVOCATION, "a") == 12_000
    world.advance(1_000)
    world.heartbeat("a", 2)
    assert world.due_in(REVOCATION, "a") == 11_000
    world.heartbeat("a", 2, topic_partitions=owned(foo=kept[FOO]))
    assert world.due_in(REVOCATION, "a") is None
    decision = world.coordinator._shards[0].on_timer(TimerKey(REVOCATION, G, "a"), world.now_ms)
    assert decision.records == ()


def test_87_partitions_are_not_given_up() -> None:
    world = rebalancing()
    world.advance(11_999)
    assert world.records == ()
    world.advance(1)
    assert world.kinds()[:4] == [-8, -7, -5, 3]
    assert world.heartbeat("a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert shown(world.heartbeat("b", 3)) == {FOO: set(range(6))}


def test_88_each_heartbeat_restarts_the_session() -> None:
    world = World()
    world.join("a", "foo")
    assert world.due_in(SESSION, "a") == 45_000
    world.advance(10_000)
    assert world.due_in(SESSION, "a") == 35_000
    world.heartbeat("a", 2)
    assert world.due_in(SESSION, "a") == 45_000
    world.heartbeat("a", 7)
    world.advance(1_000)
    world.heartbeat("a", 7)
    assert world.due_in(SESSION, "a") == 44_000
    world.heartbeat("a", -1)
    assert world.due_in(SESSION, "a") is None


def test_89_a_silent_member_is_removed() -> None:
    world = World()
    world.join("a", "foo")
    world.advance(44_999)
    assert world.records == ()
    world.advance(1)
    assert world.kinds() == [-8, -7, -5, 3, 6]
    assert world.group().epoch == 3


def test_90_after_a_load() -> None:
    a = stable("a", names=("foo",), assigned=held(10, foo=(1,)))
    b = replace(stable("b", names=("foo",), revoking=held(10, foo=(2,))), state=UNREVOKED)
    world = World(Given(11, [(a, target(foo=(1,))), (b, {})]))
    assert [world.due_in(SESSION, each) for each in "ab"] == [45_000, 45_000]
    assert [world.due_in(REVOCATION, each) for each in "ab"] == [None, 5_000]
    world.advance(5_000)
    assert list(world.group().members) == ["a"]
    world.advance(40_000)
    assert world.group().members == {}


def test_90_a_load_begins_the_session_of_the_group() -> None:
    world = World()
    world.join("a", "foo")
    world.configs.session_ms = 7_000
    world.advance(1_000)
    world.reload()
    assert world.due_in(SESSION, "a") == 7_000


def test_timers_end_with_the_lead_of_a_shard() -> None:
    world = rebalancing()
    world.coordinator.unload(0, world.now_ms)
    assert world.due_in(SESSION, "a") is world.due_in(REVOCATION, "a") is None


def test_time_moves_ahead_for_a_connected_member() -> None:
    """Its client's clock does not move, so it must not lose its session."""
    world = World()
    world.join("a", "foo")
    world.join("b", "foo")
    world.coordinator.keep_sessions([(G, "a"), ("other", "a")], world.now_ms, 100_000)
    assert [world.due_in(SESSION, each) for each in "ab"] == [145_000, 45_000]
    world.advance(100_000)
    assert list(world.group().members) == ["a"]
