"""Large shards are loaded while requests are answered: in which order, how long at a time, and what may
happen meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from twisted.internet.task import Clock

from kshim.coordination.alarm import LONGEST_TURN_MS
from kshim.coordination.group_runtime import GroupRuntime
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.coordinator import Coordinator
from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup
from kshim.coordination.groups.settings import Settings
from kshim.coordination.led_shards import RELOAD_S, START_MS
from kshim.coordination.loading import Leader, Loader
from kshim.storage.interfaces import JournalBatch, StorageError
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from schemas.messages.list_groups import ListGroupsRequest
from tests.api.harness import context, later
from tests.coordination.held_runtime import NONSENSE, START_S, Entry, HeldJournal, Server, error, offset

GROUPS = {"d": 0, "a": 1, "b": 2, "c": 3}
"""A group of each shard."""
ENTRY_MS = 3
ENTRIES = 7
assert ENTRIES == START_MS // ENTRY_MS + 1, "the start loads those of the first shard"


def commits(group_id: str) -> list[Entry]:
    """Some commits of one group; the last offset is ENTRIES - 1."""
    key = encode_key(OffsetCommitKey(group=group_id, topic="topic", partition=0))
    values = (OffsetCommitValue(offset=n, commit_timestamp=START_S * 1000) for n in range(ENTRIES))
    return [JournalBatch([(key, encode_value(value))]) for value in values]


class SlowJournal(HeldJournal):
    """Each entry takes ENTRY_MS to load."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.failing: set[int] = set()
        self.loaded: list[int] = []
        """The shards of the entries, in the order in which they were loaded."""
        self.durable = {shard: commits(group_id) for group_id, shard in GROUPS.items()}

    def load(self, shard: int) -> Iterator[Entry]:
        for entry in super().load(shard):
            self.clock.rightNow += ENTRY_MS / 1000
            self.loaded.append(shard)
            if shard in self.failing:
                raise StorageError("the disk does not answer")
            yield entry


class Slow(Server):
    """A runtime of four shards. When the start returns, all of the first one is read, and nothing served."""

    def start(self) -> GroupRuntime:
        self.journal = SlowJournal(self.clock)
        self.loader = Loader(self.clock)
        coordinator = Coordinator(Settings(), str, partitions=4)
        assert {group_id: coordinator.shard_for(group_id) for group_id in GROUPS} == GROUPS
        self.runtime = GroupRuntime(coordinator, self.journal, self.clock, self.loader)
        return self.runtime

    def turn(self) -> None:
        """One turn of the reactor; what is scheduled in it waits for the next, unlike in `Clock.advance`."""
        for call in self.clock.getDelayedCalls():
            if call.getTime() <= self.clock.seconds():
                self.clock.calls.remove(call)
                call.called = True
                call.func(*call.args, **call.kw)

    def served(self) -> list[str]:
        """The groups that are served, by shard; to ask for them would change the order."""
        return [group_id for group_id, shard in GROUPS.items() if shard in self.runtime.shards.leads]

    def load_all(self) -> None:
        while self.runtime.shards.loading:
            self.turn()

    @property
    def is_idle(self) -> bool:
        """True if nothing is scheduled for this turn or the next."""
        return all(call.getTime() > self.clock.seconds() for call in self.clock.getDelayedCalls())


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def started(slow: Slow) -> Slow:
    slow.runtime.start()
    return slow


class TestOrder:
    def test_a_small_log_is_loaded_before_the_start_returns(self, slow: Slow) -> None:
        slow.journal.durable = {0: commits("d")[:2], 3: commits("c")[:2]}
        slow.runtime.start()
        assert slow.served() == [*GROUPS]
        assert slow.is_idle

    def test_of_a_large_one_only_as_much_as_a_start_may_take(self, slow: Slow) -> None:
        slow.runtime.start()
        assert slow.journal.loaded == [0] * ENTRIES
        assert slow.served() == []

    def test_shards_are_served_one_after_the_other(self, started: Slow) -> None:
        seen = []
        while started.runtime.shards.loading:
            started.turn()
            seen.append(len(started.served()))
        assert seen == sorted(seen)
        assert {*seen} == {1, 2, 3, 4}
        assert [offset(started.fetch(group_id)) for group_id in GROUPS] == [ENTRIES - 1] * 4
        assert started.is_idle

    def test_the_one_that_a_client_asks_for_is_next(self, started: Slow) -> None:
        assert started.fetch("b").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        started.turn()
        started.turn()
        assert started.journal.loaded[ENTRIES : 2 * ENTRIES] == [2] * ENTRIES
        assert "b" in started.served()

    def test_those_that_are_asked_for_come_in_that_order(self, started: Slow) -> None:
        assert started.runtime.refusal(context(9), DescribeGroup("c"))
        started.fetch("b")
        started.fetch("c")
        started.load_all()
        assert list(dict.fromkeys(started.journal.loaded)) == [0, 3, 2, 1]


class TestTurns:
    def test_none_is_longer_than_ten_milliseconds_and_an_entry(self, started: Slow) -> None:
        while started.runtime.shards.loading:
            before_s = started.clock.seconds()
            started.turn()
            took_ms = (started.clock.seconds() - before_s) * 1000
            assert took_ms < LONGEST_TURN_MS + ENTRY_MS

    def test_two_runtimes_have_one_turn_together(self, started: Slow) -> None:
        other = GroupRuntime(Coordinator(Settings(), str, 4), started.journal, started.clock, started.loader)
        other.start()
        before_s = started.clock.seconds()
        started.turn()
        assert (started.clock.seconds() - before_s) * 1000 < LONGEST_TURN_MS + ENTRY_MS
        started.load_all()
        assert not started.is_idle
        while other.shards.loading:
            started.turn()
        assert started.is_idle

    def test_so_have_all_shards_that_move_at_once(self, started: Slow) -> None:
        """This happens when a broker that leads many shards stops."""
        started.load_all()
        started.clock.rightNow += 1
        for entries in started.journal.durable.values():
            del entries[1:]
        before_s = started.clock.seconds()
        for shard in range(4):
            started.runtime.load(shard, Leader(1, 1))
        assert (started.clock.seconds() - before_s) * 1000 < LONGEST_TURN_MS + ENTRY_MS
        assert len(started.served()) == 3
        started.turn()
        assert started.served() == [*GROUPS]
        started.turn()
        assert started.is_idle

    def test_many_groups_are_made_in_several_turns(self, slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
        names = [f"group-{number}" for number in range(20)]
        value = encode_value(GroupMetadataValue(generation=1, protocol=None, leader=None))
        stored = [(encode_key(GroupMetadataKey(group=name)), value) for name in names]
        slow.journal.durable = {0: [JournalBatch(stored)]}
        from_metadata = ClassicGroup.from_metadata

        def slowly(group_id: str, stored: GroupMetadataValue) -> ClassicGroup:
            slow.clock.rightNow += ENTRY_MS / 1000
            return from_metadata(group_id, stored)

        monkeypatch.setattr(ClassicGroup, "from_metadata", slowly)
        slow.runtime.start()
        assert slow.served() == []
        while slow.runtime.shards.loading:
            before_s = slow.clock.seconds()
            slow.turn()
            assert (slow.clock.seconds() - before_s) * 1000 < LONGEST_TURN_MS + ENTRY_MS
        listed = slow.runtime.list_groups(context(5), ListGroupsRequest())
        assert [group.group_id for group in listed.groups] == names

    def test_the_groups_that_come_alive_count_too(
        self, started: Slow, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started.load_all()
        started.clock.rightNow += 1
        coordinator = started.runtime._groups
        finish_load = coordinator.finish_load

        def slowly(shard: int, now_ms: int) -> Any:
            started.clock.rightNow += LONGEST_TURN_MS / 1000
            return finish_load(shard, now_ms)

        monkeypatch.setattr(coordinator, "finish_load", slowly)
        started.journal.durable.clear()
        for shard in range(4):
            started.runtime.load(shard, Leader(1, 1))
        assert len(started.served()) == 1
        started.turn()
        assert len(started.served()) == 2

    def test_it_is_said_when_all_are_loaded(self, started: Slow) -> None:
        done: list[Any] = []
        started.loader.when_done().addCallback(lambda _: done.append(started.served()))
        started.load_all()
        assert done == [[*GROUPS]]
        started.loader.when_done().addCallback(done.append)
        assert done[1:] == [None]


class TestMeanwhile:
    def test_requests_are_refused_as_by_kafka(self, started: Slow) -> None:
        """Java consumers give up on this code after a heartbeat or a SyncGroup."""
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        described = started.submit(DescribeGroup("a"))
        deleted = started.submit(DeleteGroup("a"))
        answers = [started.join(), started.commit("a"), started.fetch("a"), described, deleted]
        assert [error(answer) for answer in answers] == [loading] * 5
        assert error(started.heartbeat("a")) == ErrorCode.NONE
        assert error(started.sync()) == ErrorCode.REBALANCE_IN_PROGRESS
        assert started.runtime.list_groups(context(5), ListGroupsRequest()).error_code == loading
        started.load_all()
        listed = started.runtime.list_groups(context(5), ListGroupsRequest())
        assert {group.group_id for group in listed.groups} == {*GROUPS}

    def test_a_shard_that_is_served_takes_commits(self, started: Slow) -> None:
        started.journal.holds = False
        started.turn()
        assert started.served() == ["d"]
        assert error(started.commit("d", offset=70)) == ErrorCode.NONE
        started.load_all()
        assert [offset(started.fetch(group_id)) for group_id in "dc"] == [70, ENTRIES - 1]

    def test_a_topic_is_deleted(self, started: Slow) -> None:
        later(started.runtime.topics_deleted({"topic"}))
        started.journal.holds = False
        started.load_all()
        started.runtime.end_turn()
        assert [offset(started.fetch(group_id)) for group_id in GROUPS] == [-1] * 4

    def test_a_stop(self, started: Slow) -> None:
        done: list[Any] = []
        started.loader.when_done().addCallback(done.append)
        started.turn()
        started.runtime.stop()
        loaded = len(started.journal.loaded)
        assert started.clock.getDelayedCalls() == []
        assert (done, started.served()) == ([None], [])
        assert started.fetch("c").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert len(started.journal.loaded) == loaded

    def test_a_shard_moves_away(self, started: Slow) -> None:
        started.runtime.unload(0)
        started.load_all()
        assert started.served() == ["a", "b", "c"]
        assert started.fetch("d").error_code == ErrorCode.NOT_COORDINATOR

    def test_damage_is_told_and_the_other_shards_are_served(
        self, slow: Slow, caplog: pytest.LogCaptureFixture
    ) -> None:
        slow.journal.durable[1].append(NONSENSE)
        slow.runtime.start()
        with caplog.at_level(logging.ERROR):
            slow.load_all()
        assert "__consumer_offsets-1: cannot be loaded: __consumer_offsets-1 holds a corrupt" in caplog.text
        assert slow.served() == ["d", "b", "c"]
        assert slow.fetch("a").error_code == ErrorCode.NOT_COORDINATOR
        assert slow.is_idle

    def test_what_others_may_have_written_is_skipped_where_it_cannot_be_read(
        self, slow: Slow, caplog: pytest.LogCaptureFixture
    ) -> None:
        stored = [each for each in slow.journal.durable[1] if isinstance(each, JournalBatch)]
        records = [record for each in (NONSENSE, *stored, NONSENSE) for record in each.records]
        slow.journal.durable[1] = [JournalBatch(records, skips_unreadable=True)]
        slow.runtime.start()
        slow.load_all()
        assert "__consumer_offsets-1: skipped a record: " in caplog.text
        assert slow.fetch("a").error_code == ErrorCode.NONE

    def test_damage_that_the_start_finds_stops_it(self, slow: Slow) -> None:
        slow.journal.durable[0] = [NONSENSE]
        with pytest.raises(StorageError, match="__consumer_offsets-0 holds a corrupt record"):
            slow.runtime.start()

    def test_a_fault_of_ours_does_not_keep_the_others_from_loading(
        self, started: Slow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        load = started.runtime._groups.load

        def wrongly(shard: int, *arguments: Any) -> Any:
            assert shard != 1
            return load(shard, *arguments)

        monkeypatch.setattr(started.runtime._groups, "load", wrongly)
        for _ in range(50):
            started.turn()
        assert started.served() == ["d", "b", "c"]
        assert "shard 1 cannot be loaded" in caplog.text
        assert started.fetch("a").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def test_a_shard_whose_last_append_is_under_way_keeps_its_place(self, started: Slow) -> None:
        """It is asked for while it waits for that append, and comes next when it may be loaded."""
        started.load_all()
        started.clock.rightNow += 1
        started.journal.loaded.clear()
        started.commit("c")
        for shard in (0, 3, 1, 2):
            started.runtime.load(shard, Leader(1, 1))
        started.runtime.shards.want(3)
        started.journal.release(3)
        started.load_all()
        assert list(dict.fromkeys(started.journal.loaded)) == [0, 3, 1, 2]

    def test_a_disk_that_does_not_answer_is_asked_again(self, started: Slow) -> None:
        started.journal.failing.add(2)
        started.load_all()
        assert started.served() == ["d", "a", "c"]
        assert started.fetch("b").error_code == ErrorCode.NOT_COORDINATOR
        started.journal.failing.clear()
        started.clock.rightNow += RELOAD_S
        started.turn()
        assert started.fetch("b").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        started.load_all()
        assert offset(started.fetch("b")) == ENTRIES - 1
