"""Groups change their protocol while members are in them; cases 122 to 137."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.coordination.groups.consumer import topic_names
from kshim.coordination.groups.consumer.classic_member import waits_for_others
from kshim.coordination.groups.consumer.requests import MemberHeartbeat
from kshim.coordination.groups.consumer.topic_names import UNPREPARED, Prepared, read_aside
from kshim.coordination.groups.records import encode_record
from kshim.coordination.groups.settings import MigrationPolicy
from kshim.coordination.groups.states import State
from kshim.coordination.groups.timers import TimerKey, TimerKind
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataKey
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.join_group import JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.coordination.groups.consumer.mixed import NONE, REBALANCING, Mixed, assignment, had, subscription
from tests.coordination.groups.consumer.world import BAR, FOO, G, error_of, owned, shown

REFUSED = "Cannot upgrade classic group g to consumer group because "


def policies(*names: str) -> Any:
    return pytest.mark.parametrize("policy", [MigrationPolicy(name) for name in names])


class TestUpgrades:
    @policies("disabled", "downgrade")
    def test_122_not_by_the_policy(self, policy: MigrationPolicy) -> None:
        world = Mixed(group_consumer_migration_policy=policy)
        world.classic()
        assert error_of(world.join("m", "foo")) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            REFUSED + "online upgrade is disabled.",
        )
        assert (world.records, world.groups()) == ((), {})

    def test_122_not_another_type(self) -> None:
        world = Mixed()
        world.join_classic(protocol_type="connect")
        message = "the group does not use the consumer embedded protocol."
        assert error_of(world.join("m", "foo"))[1] == REFUSED + message

    def test_122_not_a_group_that_is_too_large(self) -> None:
        world = Mixed(group_consumer_max_size=1)
        world.join_classic()
        world.join_classic()
        message = "the group size exceeds the consumer group maximum size."
        assert error_of(world.join("m", "foo"))[1] == REFUSED + message

    def test_126_not_with_a_custom_assignor(self) -> None:
        world = Mixed()
        world.classic(assigned=assignment(b"mine", foo=(1,)))
        error, message = error_of(world.join("m", "foo"))
        assert error is ErrorCode.GROUP_ID_NOT_FOUND
        assert message == REFUSED + (
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
            "default assignor before re-attempting the upgrade."
        )
        assert world.classic_groups[G].state is State.STABLE

    def test_not_with_bytes_that_are_no_assignment(self) -> None:
        world = Mixed()
        world.classic(assigned=b"\0")
        assert error_of(world.join("m", "foo"))[1] == REFUSED + "the embedded consumer protocol is malformed."

    def test_a_refused_heartbeat_disturbs_nobody(self) -> None:
        world = Mixed()
        world.classic()
        parked = world.join_classic()
        answer = world.join("m", subscribed_topic_regex="[")
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert parked not in world.answers
        assert (world.groups(), world.classic_groups[G].state) == ({}, State.PREPARING_REBALANCE)

    def test_124_a_stable_group(self) -> None:
        world = Mixed()
        old = world.classic()
        answer = world.join("m", "foo", "bar")
        assert world.kinds() == [-2, 5, 3, 7, 6, 8, 5, 3, 7, 7, 6, 8]
        assert (answer.member_epoch, world.group().epoch) == (2, 2)
        member = world.member(old)
        assert (member.epoch, member.previous_epoch, set(member.assigned[FOO])) == (1, 1, set(range(6)))
        assert member.classic is not None
        assert member.classic.session_timeout_ms == 10_000
        assert world.due_in(TimerKind.SESSION, old) == 10_000
        assert world.classic_groups == {}
        key = TimerKey(TimerKind.MEMBER, G, old)
        assert world.coordinator._timers.deadline_ms(key) is None

    def test_124_its_offsets_stay_and_it_can_be_read(self) -> None:
        world = Mixed()
        world.classic()
        world.join("m", "foo")
        world.reload()
        assert (len(world.group().members), world.classic_groups) == (2, {})

    def test_a_group_that_all_members_have_left_while_it_was_being_joined(self) -> None:
        world = Mixed(group_initial_rebalance_delay_ms=3_000)
        world.join_classic(instance_id="i")
        world.ask(LeaveGroupRequest(group_id=G, members=(MemberIdentity(group_instance_id="i"),)), 3)
        assert world.classic_groups[G].state is State.PREPARING_REBALANCE
        answer = world.join("m", "foo")
        assert (answer.error_code, set(world.group().members)) == (NONE, {"m"})
        assert world.classic_groups == {}

    def test_125_parked_joins_are_called_back(self) -> None:
        world = Mixed()
        world.classic()
        parked = world.join_classic()
        world.join("m", "foo")
        assert world.answers[parked].error_code == REBALANCING
        assert world.group().subscriptions.classic_members == 2

    def test_125_parked_syncs_are_called_back(self) -> None:
        world = Mixed()
        one, two = world.join_classic(), world.join_classic()
        world.advance(3_000)
        follower = next(
            each for each in (world.answers[one], world.answers[two]) if each.leader != each.member_id
        )
        assert world.sync_classic(follower.member_id, follower.generation_id) is None
        token = world._tokens
        world.join("m", "foo")
        assert world.answers[token].error_code == REBALANCING
        assert world.member(follower.member_id).assigned == {}

    def test_127_a_static_member_comes_with_the_new_protocol(self) -> None:
        world = Mixed()
        world.classic(instance_id="i")
        answer = world.join("m", "foo", instance_id="i")
        assert (answer.member_epoch, shown(answer)) == (1, {FOO: set(range(6))})
        assert (list(world.group().members), world.member("m").classic) == (["m"], None)

    def test_128_a_member_without_an_assignment(self) -> None:
        world = Mixed()
        old = world.classic(assigned=b"")
        world.join("m", "foo")
        assert world.member(old).assigned == {}

    def test_a_group_that_forms_its_first_generation(self) -> None:
        world = Mixed()
        parked = world.join_classic()
        answer = world.join("m", "foo")
        assert (answer.error_code, answer.member_epoch) == (0, 1)
        refused = world.answers[parked]
        assert refused.error_code == REBALANCING
        joined = world.answers[world.join_classic(refused.member_id)]
        assert (joined.error_code, joined.generation_id) == (0, 1)
        assert had(world.sync_classic(joined.member_id, 1).assignment) == {"foo": set(range(3))}

    def test_a_member_that_does_not_offer_the_protocol_of_the_last_generation(self) -> None:
        world = Mixed()
        both = tuple(
            JoinGroupRequestProtocol(name=name, metadata=subscription("foo"))
            for name in ("range", "roundrobin")
        )
        token = world.join_classic(protocols=both)
        world.advance(3_000)
        old = world.answers[token].member_id
        world.sync_classic(old, 1, {old: assignment(foo=range(6))})
        world.join_classic(protocols=both[1:])
        assert world.join("m", "foo").error_code == 0
        assert set(world.member(old).assigned[FOO]) == set(range(6))

    def test_a_static_member_that_comes_back_does_not_end_a_rebalance(self) -> None:
        world, old = mixed()
        static = world.answers[world.join_classic(version=5, instance_id="i")]
        world.heartbeat("m", -1)
        answer = world.join("n", "foo", instance_id="i")
        assert (answer.error_code, answer.member_epoch) == (0, static.generation_id + 1)
        targets = world.group().targets
        assert sorted(each for member_id in (old, "n") for each in targets[member_id][FOO]) == list(range(6))

    def test_members_of_a_rebalance_that_is_due_join_again(self) -> None:
        world, old = mixed()
        world.join_classic(old)
        world.sync_classic(old, 2)
        world.heartbeat("m", -1)
        world.join("n")
        assert world.beat_classic(old, 2) == REBALANCING
        answer = world.answers[world.join_classic(old)]
        assert had(world.sync_classic(old, answer.generation_id).assignment) == {"foo": set(range(6))}

    def test_a_partition_that_nobody_has_gets_an_owner(self) -> None:
        world = Mixed()
        old = world.classic(assigned=assignment(foo=range(4)))
        assert world.join("m").member_epoch == 2
        assert world.beat_classic(old, 1) == REBALANCING
        world.join_classic(old)
        assert set(world.member(old).assigned[FOO]) == set(range(6))

    def test_129_a_classic_member_turns_in_place(self) -> None:
        world = Mixed()
        old = world.classic()
        world.join("m", "foo")
        answer = world.join(old, "foo")
        assert (answer.error_code, world.member(old).classic) == (0, None)
        assert world.group().subscriptions.classic_members == 0


def mixed(**settings: Any) -> tuple[Mixed, str]:
    """A group of a classic member and the consumer member m, whose target is computed."""
    world = Mixed(**settings)
    old = world.classic()
    world.join("m", "foo")
    return world, old


class TestDowngrades:
    @pytest.mark.parametrize("how", ["leaves", "expires", "is removed"])
    def test_131_the_last_consumer_member_is_gone(self, how: str) -> None:
        world, old = mixed()
        if how == "leaves":
            world.heartbeat("m", -1)
        elif how == "is removed":
            identity = (MemberIdentity(member_id="m"),)
            world.ask(LeaveGroupRequest(group_id=G, members=identity), 5)
        else:
            world.join_classic(old)
            world.sync_classic(old, 2)
            for _ in range(9):
                assert world.beat_classic(old, 2) == NONE
                world.advance(5_000)
        kinds = world.kinds()
        assert kinds[:9] == [-8, -8, -7, -7, -6, -5, -5, -4, -3]
        assert kinds[9:] == [2]
        group = world.classic_groups[G]
        assert (group.state, group.generation, list(group.members)) == (State.PREPARING_REBALANCE, 2, [old])
        held = range(3) if how == "expires" else range(6)
        assert had(group.members[old].assignment) == {"foo": set(held)}
        assert world.groups() == {}
        assert world.beat_classic(old, 2) == REBALANCING
        world.reload()
        assert (world.groups(), list(world.classic_groups[G].members)) == ({}, [old])

    def test_131_the_member_joins_again(self) -> None:
        world, old = mixed()
        world.heartbeat("m", -1)
        token = world.join_classic(old)
        assert (world.answers[token].error_code, world.answers[token].generation_id) == (0, 3)

    def test_it_rebalances_after_a_restart_too(self) -> None:
        world, old = mixed()
        world.join_classic(old)
        world.sync_classic(old, 2)
        world.heartbeat("m", -1)
        world.reload()
        assert world.beat_classic(old, 2) == REBALANCING
        answer = world.answers[world.join_classic(old)]
        assert (answer.generation_id, answer.leader) == (3, old)
        world.sync_classic(old, 3, {old: assignment(foo=range(6))})
        world.reload()
        assert world.beat_classic(old, 3) == NONE

    @policies("disabled", "upgrade")
    def test_135_not_by_the_policy(self, policy: MigrationPolicy) -> None:
        world, old = mixed()
        world.settings = world.settings.__class__(group_consumer_migration_policy=policy)
        world.reload()
        world.heartbeat("m", -1)
        assert list(world.group().members) == [old]
        assert world.group().state == "Assigning"
        assert world.classic_groups == {}

    def test_a_target_that_was_due_is_computed_after_a_restart(self) -> None:
        world, old = mixed()
        world.settings = world.settings.__class__(group_consumer_migration_policy=MigrationPolicy.UPGRADE)
        world.reload()
        world.heartbeat("m", -1)
        world.reload()
        world.advance()
        assert world.group().assignment_epoch == world.group().epoch
        assert set(world.group().targets[old][FOO]) == set(range(6))

    def test_classic_members_get_partitions_that_came_while_the_server_was_down(self) -> None:
        world, old = mixed()
        world.settings = world.settings.__class__(group_consumer_migration_policy=MigrationPolicy.UPGRADE)
        world.reload()
        world.heartbeat("m", -1)
        world.advance()
        world.topics.put("foo", 7)
        world.reload()
        world.advance()
        assert set(world.group().targets[old][FOO]) == set(range(7))

    def test_134_not_a_group_that_is_too_large(self) -> None:
        world, old = mixed()
        world.settings = world.settings.__class__(group_max_size=0)
        world.reload()
        world.heartbeat("m", -1)
        assert list(world.group().members) == [old]

    def test_132_several_leave_in_one_step(self) -> None:
        world, old = mixed()
        world.join("n", "foo", instance_id="i")
        entries = (MemberIdentity(member_id="m"), MemberIdentity(member_id="", group_instance_id="i"))
        world.ask(LeaveGroupRequest(group_id=G, members=entries), 5)
        assert world.kinds().count(2) == 1
        assert list(world.classic_groups[G].members) == [old]

    @pytest.mark.parametrize("changes", [False, True])
    def test_133_a_classic_member_takes_the_place_of_the_last_one(self, changes: bool) -> None:
        world = Mixed()
        world.join("m", "foo", instance_id="i")
        topics = ("foo", "bar") if changes else ("foo",)
        protocols = (JoinGroupRequestProtocol(name="range", metadata=subscription(*topics, foo=range(6))),)
        token = world.join_classic(instance_id="i", version=5, protocols=protocols)
        answer = world.answers[token]
        group = world.classic_groups[G]
        assert list(group.members) == [answer.member_id]
        assert world.groups() == {}
        if changes:
            assert (answer.generation_id, group.state) == (3, State.PREPARING_REBALANCE)
        else:
            assert (answer.generation_id, group.state) == (2, State.STABLE)
            assert had(world.sync_classic(answer.member_id, 2).assignment) == {"foo": set(range(6))}
        world.reload()
        assert list(world.classic_groups[G].members) == [answer.member_id]

    def test_nobody_gets_what_another_one_still_holds(self) -> None:
        world, old = mixed()
        other = world.answers[world.join_classic("x")]
        world.heartbeat("m", -1)
        world.join("n")
        assert set(world.member(old).assigned[FOO]) == set(range(6))
        world.join_classic("x")
        assert had(world.sync_classic("x", other.generation_id + 1).assignment) == {}

    def test_a_classic_member_takes_the_place_of_the_last_one_while_others_wait(self) -> None:
        world = Mixed()
        world.join("m", "foo", instance_id="i")
        waiting = world.answers[world.join_classic("x")]
        assert had(world.sync_classic("x", waiting.generation_id).assignment) == {}
        world.heartbeat("m", -2, instance_id="i")
        answer = world.answers[world.join_classic(instance_id="i", version=5)]
        assert (answer.error_code, answer.generation_id) == (0, waiting.generation_id)
        assert world.classic_groups[G].state is State.PREPARING_REBALANCE
        assert world.beat_classic("x", waiting.generation_id) == REBALANCING

    def test_not_when_the_last_one_turns_classic_in_place(self) -> None:
        world = Mixed()
        world.join("m", "foo")
        world.join_classic("m")
        assert world.member("m").classic is not None
        assert world.classic_groups == {}


class TestClassicMembers:
    """A classic member in a consumer group; cases 138 to 155."""

    def consumer(self, **settings: Any) -> Mixed:
        world = Mixed(**settings)
        world.join("m", "foo")
        return world

    def error(self, world: Mixed, token: int) -> ErrorCode:
        assert world.answers[token].member_id == ""
        return ErrorCode(world.answers[token].error_code)

    def test_138_a_full_group(self) -> None:
        world = self.consumer(group_consumer_max_size=1)
        assert self.error(world, world.join_classic()) == ErrorCode.GROUP_MAX_SIZE_REACHED

    def test_139_a_protocol_that_is_not_supported(self) -> None:
        world = self.consumer()
        inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert self.error(world, world.join_classic(protocol_type="connect")) == inconsistent
        assert self.error(world, world.join_classic(protocols=())) == inconsistent
        world.join_classic()
        sticky = (JoinGroupRequestProtocol(name="sticky", metadata=subscription("foo")),)
        assert self.error(world, world.join_classic(protocols=sticky)) == inconsistent

    def test_malformed_metadata(self) -> None:
        protocols = (JoinGroupRequestProtocol(name="range", metadata=b"\0"),)
        world = self.consumer()
        token = world.join_classic(protocols=protocols)
        assert self.error(world, token) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_not_where_migration_is_disabled(self) -> None:
        """KAFKA-20640."""
        world = self.consumer(group_consumer_migration_policy=MigrationPolicy.DISABLED)
        assert self.error(world, world.join_classic()) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_140_a_dynamic_member(self) -> None:
        world = self.consumer()
        token = world.join_classic(version=4)
        required = world.answers[token]
        assert (required.error_code, world.records) == (ErrorCode.MEMBER_ID_REQUIRED, ())
        token = world.join_classic(required.member_id, version=4)
        answer = world.answers[token]
        assert world.kinds() == [5, 3, 7, 7, 6, 8]
        assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 3, "range")
        assert (answer.leader, answer.members, answer.skip_assignment) == ("", (), False)
        assert world.due_in(TimerKind.SESSION, answer.member_id) == 10_000
        assert world.due_in(TimerKind.RESYNC, answer.member_id) == 20_000

    def test_142_143_a_static_member_and_its_successor(self) -> None:
        world = self.consumer()
        first = world.answers[world.join_classic(version=5, instance_id="i")]
        assert (first.error_code, first.generation_id) == (0, 3)
        second = world.answers[world.join_classic(version=5, instance_id="i")]
        assert second.generation_id == 3
        assert world.group().static_members == {"i": second.member_id}
        assert world.group().epoch == 3

    def test_144_with_another_subscription(self) -> None:
        world = self.consumer()
        world.join_classic(version=5, instance_id="i")
        protocols = (JoinGroupRequestProtocol(name="range", metadata=subscription("bar")),)
        answer = world.answers[world.join_classic(version=5, instance_id="i", protocols=protocols)]
        assert answer.generation_id == 4
        assert BAR in world.group().targets[answer.member_id]

    def test_145_wrong_static_members(self) -> None:
        world = self.consumer()
        token = world.join_classic("x", version=5, instance_id="i")
        assert self.error(world, token) == ErrorCode.UNKNOWN_MEMBER_ID
        world.join_classic(version=5, instance_id="i")
        token = world.join_classic("x", version=5, instance_id="i")
        assert self.error(world, token) == ErrorCode.FENCED_INSTANCE_ID

    def test_155_any_id_may_join(self) -> None:
        world = self.consumer()
        assert world.answers[world.join_classic("x")].member_id == "x"

    def test_146_an_eager_member(self) -> None:
        world = self.consumer()
        world.join_classic("x")
        assert world.member("x").state.name == "UNRELEASED_PARTITIONS"
        assert had(world.sync_classic("x", 3).assignment) == {}
        assert world.beat_classic("x", 3) == NONE
        kept = shown(world.heartbeat("m", 2))
        assert kept is not None
        world.heartbeat("m", 2, topic_partitions=owned(foo=kept[FOO]))
        assert world.beat_classic("x", 3) == REBALANCING
        assert world.due_in(TimerKind.REJOIN, "x") == 20_000
        answer = world.answers[world.join_classic("x")]
        assert (answer.generation_id, world.due_in(TimerKind.REJOIN, "x")) == (3, None)
        assert had(world.sync_classic("x", 3).assignment) == {"foo": set(range(6)) - kept[FOO]}
        assert world.beat_classic("x", 3) == NONE
        assert world.group().state == "Stable"

    def test_147_a_cooperative_member(self) -> None:
        world, old = mixed()
        assert world.beat_classic(old, 1) == REBALANCING
        all_of_it = (JoinGroupRequestProtocol(name="range", metadata=subscription("foo", foo=range(6))),)
        answer = world.answers[world.join_classic(old, protocols=all_of_it)]
        assert (answer.generation_id, world.member(old).state.name) == (1, "UNREVOKED_PARTITIONS")
        kept = had(world.sync_classic(old, 1).assignment)
        assert kept == {"foo": {0, 1, 2}}
        assert world.due_in(TimerKind.REVOCATION, old) is None
        assert world.beat_classic(old, 1) == REBALANCING
        less = (JoinGroupRequestProtocol(name="range", metadata=subscription("foo", foo=(0, 1, 2))),)
        answer = world.answers[world.join_classic(old, protocols=less)]
        assert answer.generation_id == 2
        assert world.beat_classic(old, 2) == NONE
        assert shown(world.heartbeat("m", 2)) == {FOO: {3, 4, 5}}

    @pytest.mark.parametrize("version", range(4))
    def test_148_the_assignment_has_the_version_of_the_subscription(self, version: int) -> None:
        world = self.consumer()
        metadata = subscription("foo", version=version)
        world.join_classic("x", protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),))
        answer = world.sync_classic("x", 3)
        assert answer.assignment[:2] == version.to_bytes(2)
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")

    def test_149_syncs_that_are_refused(self) -> None:
        world = self.consumer()
        world.join_classic("x")
        world.join_classic("y", version=5, instance_id=None)
        assert world.sync_classic("n", 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert world.sync_classic("m", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert world.sync_classic("x", 9).error_code == ErrorCode.ILLEGAL_GENERATION
        inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert world.sync_classic("x", 3, protocol_name="sticky").error_code == inconsistent
        assert world.sync_classic("x", 3, protocol_type=None).error_code == inconsistent
        assert world.sync_classic("x", 3).error_code == REBALANCING
        assert world.due_in(TimerKind.REJOIN, "x") == 20_000
        assert world.sync_classic("y", 4).error_code == NONE
        assert world.due_in(TimerKind.RESYNC, "y") is None

    def test_150_152_heartbeats(self) -> None:
        world = self.consumer()
        world.join_classic("x")
        world.advance(1_000)
        assert world.beat_classic("x", 3) == NONE
        assert world.due_in(TimerKind.SESSION, "x") == 10_000
        assert world.beat_classic("n", 3) == ErrorCode.UNKNOWN_MEMBER_ID
        assert world.beat_classic("m", 2) == ErrorCode.UNKNOWN_MEMBER_ID
        assert world.beat_classic("x", 2) == ErrorCode.ILLEGAL_GENERATION
        assert world.records == ()

    @pytest.mark.parametrize(("kind", "after_ms"), [("session", 10_000), ("sync", 20_000), ("join", 20_000)])
    def test_153_classic_members_are_removed(self, kind: str, after_ms: int) -> None:
        world = self.consumer()
        world.join_classic("x", session_timeout_ms=10_000 if kind == "session" else 1_000_000)
        if kind == "join":
            world.sync_classic("x", 3)
            world.join("z", "foo")
            assert world.beat_classic("x", 3) == REBALANCING
        else:
            world.beat_classic("x", 3)
        world.advance(after_ms - 1)
        assert "x" in world.group().members
        world.advance(1)
        assert "x" not in world.group().members

    def test_118_a_classic_member_takes_the_place_of_one_with_an_expression(self) -> None:
        world = Mixed()
        world.join("m", subscribed_topic_regex="fo+", instance_id="i")
        world.join("n", "foo")
        world.advance()
        answer = world.answers[world.join_classic(version=5, instance_id="i")]
        member = world.member(answer.member_id)
        assert (member.regex, member.topic_names, world.group().subscriptions.resolved) == ("", {"foo"}, {})
        assert -16 in world.kinds()

    def test_84_what_it_waits_for(self) -> None:
        world = self.consumer()
        world.join_classic("x")
        assert waits_for_others(world.group(), world.member("x"))
        assert not waits_for_others(world.group(), world.member("m"))
        kept = shown(world.heartbeat("m", 2))
        assert kept is not None
        world.heartbeat("m", 2, topic_partitions=owned(foo=kept[FOO]))
        assert not waits_for_others(world.group(), world.member("x"))

    def test_the_record_of_a_downgrade_is_a_classic_group_s(self) -> None:
        world, _ = mixed()
        world.heartbeat("m", -1)
        (value,) = world.written(GroupMetadataKey)
        assert value is not None
        assert (value.protocol_type, value.protocol, value.generation) == ("consumer", "range", 2)  # type: ignore[union-attr]


class TestLargeSubscriptions:
    """The subscriptions of classic members, read before the coordinator is asked to convert their group."""

    def test_a_conversion_does_not_read_them_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        names = ("foo", *(f"no-such-topic-{number}" for number in range(4_000)))
        worlds = [Mixed(), Mixed()]
        for world, prepares in zip(worlds, (False, True), strict=True):
            world.classic(protocols=(JoinGroupRequestProtocol(name="range", metadata=subscription(*names)),))
            request = ConsumerGroupHeartbeatRequest(
                group_id=G,
                member_id="m",
                rebalance_timeout_ms=5_000,
                subscribed_topic_names=("foo",),
                topic_partitions=(),
            )
            found = world.coordinator.large_subscriptions(G)
            assert found
            known = Prepared(subscriptions=read_aside(found)) if prepares else UNPREPARED
            if prepares:
                monkeypatch.delattr(topic_names, "decode_subscription")
            assert world.ask(MemberHeartbeat(request, prepared=known)).error_code == 0
            assert world.coordinator.large_subscriptions(G) == []
        one, other = ([*map(encode_record, world.journal)] for world in worlds)
        assert one == other

    def test_small_ones_are_read_by_the_coordinator(self) -> None:
        world = Mixed()
        world.classic()
        assert world.coordinator.large_subscriptions(G) == []
        assert world.coordinator.large_subscriptions("other") == []

    def test_what_cannot_be_read_is_left_to_the_coordinator(self) -> None:
        good, bad = subscription("foo"), b"\0\1nonsense"
        assert read_aside([good, bad, good]).keys() == {good}
