"""Rebalances of groups of the consumer protocol: their causes, their ends, and their stories."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.cli.timeline import CONSUMERS_LEGEND, timeline
from kshim.coordination.decision import Decision
from kshim.coordination.groups.consumer.member import LEAVES
from kshim.coordination.groups.consumer.reports import MOST_REFUSALS, GroupConverted, MemberRefused
from kshim.coordination.groups.consumer.requests import MemberHeartbeat, Patience
from kshim.coordination.groups.rebalance_record import Rebalance, Resumed
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.recorder.scores import scores
from kshim.recorder.shown import ShownRebalance, shown_in_turn
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.coordination.groups.consumer.world import BAR, FOO, G, World, owned


class Recorded(World):
    """A world that keeps the rebalances that are reported."""

    def __init__(self, **settings: Any) -> None:
        self.rebalances: list[Rebalance] = []
        self.resumed: list[str] = []
        self.others: list[str] = []
        """Refusals and conversions, as they are logged."""
        super().__init__(**settings)

    def _note(self, decision: Decision) -> None:
        self.resumed += [str(each) for each in decision.reports if isinstance(each, Resumed)]
        self.rebalances += [each for each in decision.reports if isinstance(each, Rebalance)]
        kinds = MemberRefused | GroupConverted
        self.others += [str(each) for each in decision.reports if isinstance(each, kinds)]
        super()._note(decision)

    def enter(self, member_id: str, *names: str, **fields: Any) -> None:
        self.join(member_id, *names, client_id=f"client-{member_id}", **fields)

    def stay(self, member_id: str, **fields: Any) -> None:
        """Send a heartbeat in the member's epoch."""
        self.heartbeat(member_id, self.member(member_id).epoch, client_id=f"client-{member_id}", **fields)

    def wait(self, member_id: str) -> None:
        """Send a heartbeat that waits for news."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=G, member_id=member_id, member_epoch=self.member(member_id).epoch
        )
        asked = MemberHeartbeat(request, patience=Patience.LONG)
        assert self.ask(asked, client_id=f"client-{member_id}") is None

    def give_up(self, member_id: str) -> None:
        """Say that the member owns no more than it is to keep."""
        kept = self.member(member_id).assigned
        self.stay(member_id, topic_partitions=owned(foo=kept.get(FOO, ()), bar=kept.get(BAR, ())))

    def shown(self) -> list[ShownRebalance]:
        return list(shown_in_turn(self.rebalances))

    def last(self) -> tuple[str, str, bool]:
        """The cause of the last rebalance, its detail, and true if it is complete."""
        it = self.rebalances[-1]
        return it.trigger, it.detail, it.is_complete


@pytest.fixture
def world() -> Recorded:
    return Recorded()


@pytest.fixture
def shared(world: Recorded) -> Recorded:
    """A group of a and b, which is stable."""
    world.enter("a", "foo")
    world.enter("b", "foo")
    world.stay("a")
    world.give_up("a")
    world.stay("b")
    assert world.group().state == "Stable"
    return world


def test_a_member_joins_an_empty_group(world: Recorded) -> None:
    world.enter("a", "foo")
    (record,) = world.shown()
    assert (record["generation"], record["cause"], record["completed_ms"]) == (
        2,
        "a member joined",
        world.now_ms,
    )
    assert record["is_of_consumers"]
    assert record["protocol"] == "uniform"
    assert record["story"] == [
        "The group rebalanced because a member joined: client-a (client at host).",
        "It took 0.000 s until all had their assignments.",
    ]
    assert record["members"][0]["after"] == {"foo": [0, 1, 2, 3, 4, 5]}
    assert (
        str(world.rebalances[0]) == "group g: epoch 2 with 1 member(s) after 0 ms, because a member joined: a"
    )


def test_a_second_member_gets_partitions(world: Recorded) -> None:
    world.enter("a", "foo")
    world.advance(1_000)
    world.enter("b", "foo")
    world.advance(300)
    world.stay("a")
    world.advance(200)
    world.give_up("a")
    world.advance(100)
    assert len(world.rebalances) == 1
    world.stay("b")
    record = world.shown()[-1]
    assert record["story"] == [
        "The group rebalanced because a member joined: client-b (client at host).",
        "client-a gave up partitions: 0.300 s after the beginning it was asked to, and took 0.200 s.",
        "It took 0.600 s until all had their assignments.",
        "foo-3, foo-4 and foo-5 moved from client-a to client-b.",
        "What moved had no owner for up to 0.100 s.",
    ]
    assert CONSUMERS_LEGEND in "".join(timeline(record))
    (slowest,) = {scores(world.rebalances, world.now_ms)["slowest"]}
    assert slowest == "client-a at host"


def test_a_member_hears_by_an_answer_that_has_waited(world: Recorded) -> None:
    world.enter("a", "foo")
    world.wait("a")
    world.advance(1_000)
    world.enter("b", "foo")
    world.advance(200)
    world.give_up("a")
    world.stay("b")
    assert (
        "client-a gave up partitions: 0.000 s after the beginning it was asked to, by an answer that had "
        "waited for news, and took 0.200 s."
    ) in world.shown()[-1]["story"]


def test_members_that_have_nothing_to_give_up(world: Recorded) -> None:
    for member_id in ("a", "b", "c"):
        world.enter(member_id, "foo")
    for _ in range(2):
        for member_id in ("a", "b", "c"):
            world.give_up(member_id)
    world.wait("a")
    world.advance(1_000)
    world.heartbeat("c", LEAVES)
    world.advance(300)
    world.stay("b")
    told = world.shown()[-1]["story"]
    assert "client-a heard of it after 0.050 s, by an answer that had waited for news." in told
    assert "client-b heard of it after 0.300 s, with the next heartbeat." in told


def test_a_refusal_is_reported_once_a_minute(world: Recorded) -> None:
    world.enter("a", "foo", instance_id="till")
    for _ in range(61):
        world.stay("a", instance_id="till")
        world.enter("b", "foo", instance_id="till")
        world.advance(1_000)
    first, second = world.others
    assert first == second
    assert first == (
        "group g: refused till (member b, client client-b at host): UNRELEASED_INSTANCE_ID: Static member b "
        "with instance id till cannot join the group because the instance id is owned by a member. That is "
        "till (member a, client client-a at host). Give each program a group.instance.id of its own, or end "
        "the other one."
    )


def test_refusals_are_bounded(world: Recorded) -> None:
    world.enter("a", "foo")
    for number in range(MOST_REFUSALS + 1):
        world.heartbeat(f"x{number}", 7)
    world.heartbeat("x5", 7)
    assert len(world.others) == MOST_REFUSALS + 1
    world.heartbeat("x0", 7)  # forgotten by now
    assert len(world.others) == MOST_REFUSALS + 2
    assert "UNKNOWN_MEMBER_ID" in world.others[0]


def test_members_of_no_group_are_not_reported(world: Recorded) -> None:
    world.heartbeat("a", 7)
    assert world.others == []


def test_what_is_under_way(world: Recorded) -> None:
    world.enter("a", "foo")
    world.advance(1_000)
    world.enter("b", "foo")
    now = world.coordinator.waits_for(G)
    assert now is not None
    assert (now["because"], now["began_ms"]) == ("a member joined: b", world.now_ms)


def test_a_rebalance_gives_way(world: Recorded) -> None:
    world.enter("a", "foo")
    world.enter("b", "foo")
    world.enter("c", "foo")
    assert world.last() == ("a member joined", "", False)
    assert "gave way" in world.shown()[-1]["story"][-1]


def test_a_member_leaves(shared: Recorded) -> None:
    shared.heartbeat("b", -1)
    shared.advance(0)
    shared.stay("a")
    assert shared.last() == ("a member left", "", True)
    assert "client-b left." in shared.shown()[-1]["story"]
    assert [move["to"] for move in shared.shown()[-1]["moved"]] == ["a"] * 3


def test_the_last_member_leaves(world: Recorded) -> None:
    world.enter("a", "foo")
    world.heartbeat("a", -1)
    assert world.last() == ("a member left", "", True)
    assert world.shown()[-1]["story"][-2] == "The group has no members left."


def test_a_session_expires(shared: Recorded) -> None:
    shared.advance(30_000)
    shared.stay("a")
    shared.advance(15_000)
    shared.stay("a")
    assert shared.last() == ("a member's session expired", "", True)
    sentence = (
        "client-b was not heard of any more, and its session expired, 45.0 s after its last sign of life."
    )
    assert sentence in shared.shown()[-1]["story"]


def test_a_member_does_not_give_up_partitions(world: Recorded) -> None:
    world.enter("a", "foo")
    world.enter("b", "foo")
    world.stay("a")
    world.advance(5_000)
    world.stay("b")
    assert world.last() == ("a member did not give up partitions in time", "", True)


@pytest.mark.parametrize(
    ("client_id", "cause"), [("client-b", "a member left"), ("admin", "an administrator removed a member")]
)
def test_leave_group(shared: Recorded, client_id: str, cause: str) -> None:
    leave = LeaveGroupRequest(group_id=G, members=(MemberIdentity(member_id="b"),))
    shared.ask(leave, 5, client_id)
    shared.advance(0)
    shared.stay("a")
    assert shared.last() == (cause, "", True)


def test_an_administrator_asks_for_it(shared: Recorded) -> None:
    shared.ask(ForceRebalance(G))
    shared.advance(0)
    shared.stay("a")
    shared.stay("b")
    assert shared.last() == ("an administrator asked for it", "", True)
    shared.ask(ExpireMember(G, "b"))
    shared.advance(0)
    shared.stay("a")
    assert shared.last() == ("a member's session expired", "an administrator asked for it", True)


def test_a_topic_gets_partitions(shared: Recorded) -> None:
    shared.advance(1_000)
    shared.topics.put("foo", 8)
    shared.coordinator.topic_changed("foo", "has 8 partitions, and had 6", shared.now_ms)
    shared.advance(0)
    shared.stay("a")
    shared.stay("b")
    assert shared.last() == ("a topic changed", "foo has 8 partitions, and had 6", True)


def test_a_subscription_changes(shared: Recorded) -> None:
    shared.stay("b", subscribed_topic_names=("foo", "bar"))
    shared.advance(0)
    for member_id in ("a", "b", "a", "b"):
        if shared.group().state != "Stable":
            shared.stay(member_id)
            shared.give_up(member_id)
    assert shared.last() == ("a member changed its subscription", "+bar", True)


def test_an_expression_matches_other_topics(world: Recorded) -> None:
    world.enter("a", subscribed_topic_regex="f.*")
    world.advance(0)
    world.stay("a")
    assert world.last() == ("an expression matches other topics", "", True)


def test_a_shard_is_given_up(world: Recorded) -> None:
    world.enter("a", "foo")
    world.enter("b", "foo")
    world.rebalances += [
        each for each in world.coordinator.unload(0, world.now_ms).reports if isinstance(each, Rebalance)
    ]
    assert world.last() == ("a member joined", "", False)


def test_a_static_member_comes_back(world: Recorded) -> None:
    world.enter("a", "foo", instance_id="i")
    world.heartbeat("a", -2, instance_id="i")
    assert not world.resumed
    world.enter("b", "foo", instance_id="i")
    line = "group g: static member i came back as b, previously a; no rebalance was needed"
    assert world.resumed == [line]
    world.ask(FenceMember(G, "i"))
    assert world.resumed[1:] == [line.replace("as b", "as id-1").replace("previously a", "previously b")]
    assert [each.trigger for each in world.rebalances] == ["a member joined"]
