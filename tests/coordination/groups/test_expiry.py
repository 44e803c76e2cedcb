"""Expiry: the offsets of each kind of group, then the group; in steps, and as records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kshim.coordination.decision import GroupRecord
from kshim.coordination.groups import shard
from kshim.coordination.groups.refusals import DeleteGroup
from kshim.coordination.groups.states import State
from kshim.coordination.groups.timers import ShardTimer
from schemas.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from schemas.messages.join_group import JoinGroupRequestProtocol
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequestGroup
from tests.coordination.groups.history import (
    DELAY_MS,
    SESSION_MS,
    START_MS,
    Client,
    History,
    Written,
    protocols,
)

CHECK_MS = 600_000
RETENTION_MS = 10_080 * 60_000
TOPICS = ("topic", "other")


def subscription(*topics: str) -> tuple[JoinGroupRequestProtocol, ...]:
    return protocols("range", metadata=encode_subscription(ConsumerProtocolSubscription(topics=topics)))


def commit(
    history: History,
    *topics: str,
    group_id: str = "group",
    client: Client | None = None,
    partitions: int = 1,
    retention_ms: int = -1,
) -> None:
    """Commit for the first partitions of these topics, as a member or from outside the group."""
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=client.generation_id if client else -1,
        member_id=client.member_id if client else "",
        retention_time_ms=retention_ms,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=5)
                    for index in range(partitions)
                ),
            )
            for topic in topics
        ),
    )
    answer = history.ask(request, 4)
    assert {p.error_code for topic in answer.topics for p in topic.partitions} == {ErrorCode.NONE}


def left(history: History, group_id: str = "group") -> list[str]:
    """The topics for which the group still has an offset."""
    answer = history.ask(OffsetFetchRequestGroup(group_id=group_id, topics=None))
    return [topic.name for topic in answer.topics]


def sleep_until_check(history: History, at_least_ms: int) -> None:
    """Sleep for so long, and then until the shards have next looked for what has expired."""
    history.sleep(at_least_ms)
    history.sleep(CHECK_MS - (history.now_ms - START_MS) % CHECK_MS)


def tombstones(history: History, since: int) -> list[GroupRecord]:
    records = history.records()[since:]
    assert all(record.value is None for record in records)
    return records


class TestSimpleGroups:
    """Groups that nobody has joined: only offsets, each with its own time."""

    def test_an_offset_expires_when_its_retention_is_up(self, history: History) -> None:
        """[149] [152]"""
        history.sleep(CHECK_MS)
        commit(history, "topic")
        history.sleep(RETENTION_MS - 1)
        assert left(history) == ["topic"]
        history.sleep(1)
        assert history.groups() == {}

    def test_a_millisecond_too_late_for_a_check_waits_for_the_next(self, history: History) -> None:
        """[149]"""
        history.sleep(CHECK_MS + 1)
        commit(history, "topic")
        history.sleep(RETENTION_MS)
        assert left(history) == ["topic"]
        history.sleep(CHECK_MS - 1)
        assert left(history) == []

    def test_each_offset_has_its_own_time(self, history: History) -> None:
        """[150] [152]"""
        commit(history, "topic")
        history.sleep(CHECK_MS)
        commit(history, "other")
        records = len(history.journal)
        sleep_until_check(history, RETENTION_MS - CHECK_MS - 1)
        assert left(history) == ["other"]
        history.sleep(CHECK_MS)
        assert left(history) == []
        assert tombstones(history, records) == [
            (OffsetCommitKey(group="group", topic="topic", partition=0), None),
            (OffsetCommitKey(group="group", topic="other", partition=0), None),
            (GroupMetadataKey(group="group"), None),
        ]

    def test_a_commit_begins_it_anew(self, history: History) -> None:
        for _ in range(4):
            commit(history, "topic")
            history.sleep(RETENTION_MS // 2)
        assert left(history) == ["topic"]

    @pytest.mark.parametrize("retention_ms", [2**63 - 1, 2**63 - START_MS])
    def test_a_time_beyond_all_that_can_be_written_is_for_ever(
        self, history: History, retention_ms: int
    ) -> None:
        commit(history, "topic", retention_ms=retention_ms)
        sleep_until_check(history, 2 * RETENTION_MS)
        assert left(history) == ["topic"]

    @pytest.mark.parametrize("retention_ms", [CHECK_MS // 2, CHECK_MS, 2 * RETENTION_MS])
    def test_a_time_that_the_client_set_overrides_it(self, history: History, retention_ms: int) -> None:
        """[149]"""
        commit(history, "topic", retention_ms=retention_ms)
        history.sleep(max(retention_ms, CHECK_MS) - 1)
        assert left(history) == ["topic"]
        history.sleep(1)
        assert left(history) == []
        assert history.groups() == {}


class TestEmptyGroups:
    """Groups whose members have left."""

    @pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
    def test_all_offsets_go_together_counted_from_then(self, history: History, protocol_type: str) -> None:
        """[149] [151] [152]"""
        commit(history, *TOPICS, partitions=2)
        (client,) = history.stable(1, protocol_type=protocol_type)
        for _ in range(200):
            history.sleep(SESSION_MS - 1)
            client.heartbeat()
        client.leave()
        records = len(history.journal)
        sleep_until_check(history, RETENTION_MS - CHECK_MS)
        assert left(history) == [*TOPICS]
        history.sleep(CHECK_MS)
        assert tombstones(history, records) == [
            *((OffsetCommitKey(group="group", topic=t, partition=p), None) for t in TOPICS for p in (0, 1)),
            (GroupMetadataKey(group="group"), None),
        ]
        assert history.groups() == {}
        history.restart()
        assert history.groups() == {}
        assert left(history) == []

    def test_a_commit_from_outside_does_not_prolong_it(self, history: History) -> None:
        """[149]"""
        (client,) = history.stable(1)
        commit(history, "other", client=client)
        client.leave()
        history.sleep(RETENTION_MS // 2)
        commit(history, "topic")
        sleep_until_check(history, RETENTION_MS // 2)
        assert left(history) == []

    def test_a_restart_does_not_prolong_it(self, history: History) -> None:
        """[149] [151]"""
        (client,) = history.stable(1)
        commit(history, "topic", client=client)
        client.leave()
        history.sleep(RETENTION_MS - CHECK_MS)
        history.restart()
        history.sleep(CHECK_MS - 1)
        assert left(history) == ["topic"]
        history.sleep(1)
        assert left(history) == []

    def test_a_record_without_the_time_leaves_it_to_the_commits(self, history: History) -> None:
        """[149]"""
        (client,) = history.stable(1)
        client.leave()
        number, key = history.journal[-1][0], history.records()[-1].key
        value = replace(history.records()[-1].value, current_state_timestamp=-1)
        history.journal.append((number, Written(GroupRecord(key, value))))
        history.restart()
        history.sleep(RETENTION_MS // 2 - CHECK_MS)
        history.journal.append(
            (
                number,
                Written(
                    GroupRecord(
                        OffsetCommitKey(group="group", topic="topic", partition=0),
                        OffsetCommitValue(offset=1, metadata="", commit_timestamp=history.now_ms),
                    )
                ),
            )
        )
        history.restart()
        history.sleep(RETENTION_MS - 1)
        assert left(history) == ["topic"]
        history.sleep(CHECK_MS)
        assert left(history) == []

    def test_without_offsets_it_goes_at_the_next_check(self, history: History) -> None:
        """[120] [150] [152]"""
        (client,) = history.stable(1)
        client.leave()
        records = len(history.journal)
        history.sleep(CHECK_MS - (history.now_ms - START_MS) - 1)
        assert history.group().state is State.EMPTY
        history.sleep(1)
        assert tombstones(history, records) == [(GroupMetadataKey(group="group"), None)]
        assert history.groups() == {}
        assert [str(report) for report in history.expired] == [
            "group group: deleted, for it has no members and no offsets"
        ]
        assert history.ask(DeleteGroup("group")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        history.restart()
        assert history.groups() == {}

    def test_an_id_that_was_handed_out_does_not_keep_it(self, history: History) -> None:
        history.sleep(CHECK_MS - 1)
        client = history.client()
        client.join()
        history.sleep(1)
        assert history.groups() == {}
        assert client.error(client.join()) == ErrorCode.UNKNOWN_MEMBER_ID
        client.member_id = ""
        client.enter()
        history.sleep(DELAY_MS)
        assert client.generation_id == 1


class TestGroupsWithMembers:
    @staticmethod
    def beat(history: History, ms: int, *clients: Client) -> None:
        """Pass time while the members send heartbeats. Their sessions are long, so that few heartbeats do."""
        for _ in range(ms // CHECK_MS + 1):
            history.sleep(CHECK_MS)
            for client in clients:
                assert client.heartbeat() in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)

    def test_only_topics_that_nobody_subscribes_to(self, history: History) -> None:
        """[149] [150] [152]"""
        commit(history, *TOPICS, "third")
        clients = history.stable(2, protocols=subscription("topic"), session_timeout_ms=1_800_000)
        self.beat(history, RETENTION_MS - 2 * CHECK_MS, *clients)
        assert left(history) == [*TOPICS, "third"]
        records = len(history.journal)
        self.beat(history, 2 * CHECK_MS, *clients)
        assert left(history) == ["topic"]
        assert tombstones(history, records) == [
            (OffsetCommitKey(group="group", topic=topic, partition=0), None) for topic in ("other", "third")
        ]

    def test_counted_from_the_commit(self, history: History) -> None:
        """[149]"""
        (client,) = history.stable(1, protocols=subscription("topic"), session_timeout_ms=1_800_000)
        self.beat(history, RETENTION_MS // 2, client)
        commit(history, "other", client=client)
        self.beat(history, RETENTION_MS - 2 * CHECK_MS, client)
        assert left(history) == ["other"]
        self.beat(history, 2 * CHECK_MS, client)
        assert left(history) == []
        assert history.group().state is State.STABLE
        assert [str(report) for report in history.expired] == ["group group: 1 offset(s) expired"]

    def test_none_where_subscriptions_cannot_be_read(self, history: History) -> None:
        """[149]"""
        commit(history, *TOPICS)
        (client,) = history.stable(
            1, protocols=protocols("range", metadata=b"\0"), session_timeout_ms=1_800_000
        )
        self.beat(history, RETENTION_MS, client)
        assert left(history) == [*TOPICS]

    def test_none_of_another_protocol_type(self, history: History) -> None:
        """[149] [152]"""
        commit(history, *TOPICS, retention_ms=1)
        (client,) = history.stable(1, protocol_type="connect", session_timeout_ms=1_800_000)
        self.beat(history, RETENTION_MS, client)
        assert left(history) == [*TOPICS]

    @pytest.mark.parametrize("state", [State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE])
    def test_none_while_it_rebalances(self, history: History, state: State) -> None:
        """[149] [120]"""
        commit(history, *TOPICS, retention_ms=1)
        (client,) = history.stable(1, protocols=subscription("topic"), rebalance_timeout_ms=10 * CHECK_MS)
        if state is State.COMPLETING_REBALANCE:
            client.join()
        else:
            history.client(protocols=subscription("topic")).enter()
        assert history.group().state is state
        for _ in range(CHECK_MS // SESSION_MS + 1):
            history.sleep(SESSION_MS - 1)
            client.heartbeat()
        assert history.group().state is state
        assert left(history) == [*TOPICS]

    def test_a_time_that_the_client_set_does_not_override_a_subscription(self, history: History) -> None:
        """[149]"""
        commit(history, *TOPICS, retention_ms=1)
        (client,) = history.stable(1, protocols=subscription("topic"), session_timeout_ms=1_800_000)
        self.beat(history, CHECK_MS, client)
        assert left(history) == ["topic"]

    def test_without_offsets_it_stays(self, history: History) -> None:
        """[120]"""
        (client,) = history.stable(1, session_timeout_ms=1_800_000)
        self.beat(history, RETENTION_MS, client)
        assert client.heartbeat() == ErrorCode.NONE


class TestRuns:
    def test_the_first_is_an_interval_after_loading_and_so_on(self, history: History) -> None:
        """[151]"""
        assert history.deadline_ms(ShardTimer(0)) == history.deadline_ms(ShardTimer(1)) == CHECK_MS
        history.sleep(5)
        history.restart()
        assert history.deadline_ms(ShardTimer(0)) == CHECK_MS
        history.sleep(CHECK_MS)
        assert history.deadline_ms(ShardTimer(0)) == CHECK_MS

    def test_there_is_none_after_unloading(self, history: History) -> None:
        """[151]"""
        history.resign()
        assert history.deadline_ms(ShardTimer(0)) is None
        history.sleep(2 * CHECK_MS)

    def test_both_settings_have_an_effect(self) -> None:
        history = History(offsets_retention_minutes=1, offsets_retention_check_interval_ms=7_000)
        commit(history, "topic")
        history.sleep(62_999)
        assert left(history) == ["topic"]
        history.sleep(1)
        assert left(history) == []

    def test_nothing_is_written_where_nothing_has_expired(self, history: History) -> None:
        """[151]"""
        commit(history, "topic")
        (client,) = history.stable(1, "other", session_timeout_ms=1_800_000)
        commit(history, "topic", group_id="other", client=client)
        records = len(history.journal)
        history.sleep(2 * CHECK_MS)
        assert len(history.journal) == records

    def test_a_large_shard_is_gone_over_in_steps(self) -> None:
        """No step looks at many more than MOST_OFFSETS offsets, and requests are served between steps."""
        history = History(partitions=1, offsets_retention_minutes=1)
        for n in range(12):
            commit(history, "topic", group_id=f"group-{n}", partitions=400)
        history.now_ms += CHECK_MS
        steps = []
        while history.deadline_ms(ShardTimer(0)) <= 0:
            decision = next(history.coordinator.advance(history.now_ms))
            history._carry_out(decision)
            steps.append(len(decision.records))
            if len(steps) == 1:
                commit(history, "topic", group_id="group-4")
                commit(history, "topic", group_id="group-12")
                assert history.ask(DeleteGroup("group-5")).error_code == ErrorCode.NONE
        assert sum(steps) == 401 * 10 + 399
        assert max(steps) <= shard.MOST_OFFSETS + 401
        assert set(history.groups()) == {"group-4", "group-12"}
        assert left(history, "group-4") == ["topic"]
        assert history.deadline_ms(ShardTimer(0)) == CHECK_MS

    @pytest.mark.parametrize("meanwhile", ["nothing", "a commit", "a member", "a deletion"])
    def test_a_large_group_is_gone_over_in_steps(self, meanwhile: str) -> None:
        """[151]: its offsets go in several steps, in order, and the group goes with the last, unless it is in
        use again."""
        history = History(partitions=1, offsets_retention_minutes=1)
        commit(history, "topic", partitions=3 * shard.MOST_OFFSETS)
        history.now_ms += CHECK_MS
        steps: list[list[GroupRecord]] = []
        while history.deadline_ms(ShardTimer(0)) <= 0:
            decision = next(history.coordinator.advance(history.now_ms))
            history._carry_out(decision)
            steps.append(list(decision.records))
            if len(steps) == 1 and meanwhile == "a commit":
                commit(history, "other")
            elif len(steps) == 1 and meanwhile == "a member":
                history.client().enter()
            elif len(steps) == 1 and meanwhile == "a deletion":
                assert history.ask(DeleteGroup("group")).error_code == ErrorCode.NONE
        assert max(map(len, steps)) <= shard.MOST_OFFSETS + 1
        assert len(steps) > 1
        gone = [key.partition for step in steps for key, _ in step if isinstance(key, OffsetCommitKey)]
        assert gone == sorted(set(gone))
        assert len(gone) == {"a deletion": 1, "a member": 1}.get(meanwhile, 3) * shard.MOST_OFFSETS
        is_deleted = any(isinstance(key, GroupMetadataKey) for step in steps for key, _ in step)
        assert is_deleted == (meanwhile == "nothing")
        assert ("group" in history.groups()) == (meanwhile in ("a commit", "a member"))
        if is_deleted:
            assert [record for step in steps for record in step][-1].key == GroupMetadataKey(group="group")
