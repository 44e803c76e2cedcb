"""After a restart a coordinator knows what its records say, and nothing else."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.coordination.decision import GroupRecord
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.coordination.groups import stored_records
from kshim.coordination.groups.hard_state import HardState
from kshim.coordination.groups.offered import Protocols
from kshim.coordination.groups.records import decode_record, encode_record
from kshim.coordination.groups.states import State
from kshim.coordination.groups.stored_records import StoredRecords
from kshim.coordination.groups.timers import TimerKey, TimerKind
from kshim.coordination.groups.trigger import Trigger
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from schemas.records.end_txn_marker import EndTxnMarker
from tests.coordination.groups.history import SESSION_MS, START_MS, History, Written, protocols

GROUP = GroupMetadataKey(group="group")
OFFSET = OffsetCommitKey(group="group", topic="topic", partition=0)


def member(member_id: str, **fields: object) -> MemberMetadata:
    return MemberMetadata(
        member_id=member_id,
        client_id="client",
        client_host="/10.0.0.1",
        session_timeout=SESSION_MS,
        subscription=b"topics",
        assignment=b"all",
        **fields,
    )


def group(*members: MemberMetadata) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type="consumer",
        generation=7,
        protocol="range" if members else None,
        leader=members[0].member_id if members else None,
        current_state_timestamp=12_345,
        members=members,
    )


def committed(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(offset=offset, metadata="", commit_timestamp=START_MS)


def loaded(*records: GroupRecord, **settings: int) -> History:
    """A coordinator that has loaded these records."""
    history = History(**settings)
    history.journal = [
        (history.coordinator.shard_for(record.key.group), Written(record)) for record in records
    ]
    history.restart()
    return history


class TestRecords:
    def test_a_group_with_members_is_stable(self) -> None:
        """[122]"""
        stored = group(member("a", rebalance_timeout=5_000), member("b", group_instance_id="i"))
        live = loaded(GroupRecord(GROUP, stored)).group()
        assert (live.state, live.generation, live.protocol_type, live.protocol_name, live.leader) == (
            State.STABLE,
            7,
            "consumer",
            "range",
            "a",
        )
        assert live.state_timestamp_ms == 12_345
        assert live.static_members == {"i": "b"}
        a, b = live.members.values()
        assert (a.rebalance_timeout_ms, b.rebalance_timeout_ms) == (5_000, SESSION_MS)
        assert (a.client_id, a.client_host, a.session_timeout_ms) == ("client", "/10.0.0.1", SESSION_MS)
        assert (a.protocols, a.assignment) == (Protocols.of(protocols("range")), b"all")

    def test_a_group_without_members_is_empty(self) -> None:
        live = loaded(
            GroupRecord(GROUP, GroupMetadataValue(generation=3, protocol=None, leader=None))
        ).group()
        assert (live.state, live.generation, live.protocol_type) == (State.EMPTY, 3, None)

    def test_offsets_without_a_group(self) -> None:
        """[162]"""
        history = loaded(GroupRecord(OFFSET, committed(5)))
        assert (history.group().state, history.group().protocol_type) == (State.EMPTY, None)
        assert history.client().committed() == 5

    def test_an_empty_group_with_offsets(self) -> None:
        """[162]"""
        history = loaded(GroupRecord(OFFSET, committed(5)), GroupRecord(GROUP, group()))
        assert (history.group().state, history.group().protocol_type) == (State.EMPTY, "consumer")
        assert history.client().committed() == 5

    def test_tombstones(self) -> None:
        """[162]"""
        history = loaded(
            GroupRecord(OFFSET, committed(5)),
            GroupRecord(GROUP, group(member("a"))),
            GroupRecord(OFFSET, None),
        )
        assert history.group().state is State.STABLE
        assert history.client().committed() == -1
        history = loaded(
            GroupRecord(OFFSET, committed(5)),
            GroupRecord(GROUP, group(member("a"))),
            GroupRecord(GROUP, None),
        )
        assert history.group().state is State.EMPTY
        assert history.client().committed() == 5
        history = loaded(
            GroupRecord(OFFSET, committed(5)),
            GroupRecord(GROUP, group()),
            GroupRecord(OFFSET, None),
            GroupRecord(GROUP, None),
        )
        assert history.groups() == {}

    @pytest.mark.parametrize("key", [OFFSET, GROUP])
    def test_a_tombstone_of_nothing(self, key: OffsetCommitKey | GroupMetadataKey) -> None:
        hard_state = HardState()
        hard_state.replay([GroupRecord(key, None)])
        assert (hard_state.groups, hard_state.offsets) == ({}, {})

    def test_the_last_record_counts(self) -> None:
        history = loaded(
            GroupRecord(GROUP, group(member("a"))),
            GroupRecord(OFFSET, committed(5)),
            GroupRecord(OFFSET, committed(6)),
            GroupRecord(GROUP, group(member("b"))),
        )
        assert list(history.group().members) == ["b"]
        assert history.client().committed() == 6


KEYS = st.builds(
    OffsetCommitKey,
    group=st.sampled_from(["group", "other", ""]),
    topic=st.sampled_from(["topic", "t" * 300, "\N{SNOWMAN}"]),
    partition=st.sampled_from([0, 1, 2**31 - 1, -1]),
)
VALUES = st.builds(
    OffsetCommitValue,
    offset=st.integers(-1, 2**63 - 1),
    leader_epoch=st.integers(-1, 3),
    metadata=st.sampled_from(["", "note", "\N{SNOWMAN}" * 40, "m" * 500]),
    commit_timestamp=st.just(START_MS),
    expire_timestamp=st.sampled_from([-1, -1, -1, START_MS]),
    topic_id=st.sampled_from([UUID(int=0), UUID(int=7)]),
)
COMMITS = st.builds(GroupRecord, KEYS, st.one_of(VALUES, VALUES, VALUES, st.none()))
GROUPS = st.sampled_from([GroupRecord(GROUP, group()), GroupRecord(GROUP, None)])
PRODUCERS = st.sampled_from([None, None, ProducerIdAndEpoch(1, 0), ProducerIdAndEpoch(2, 0)])
BATCHES = st.tuples(st.lists(st.one_of(COMMITS, COMMITS, GROUPS), max_size=5), PRODUCERS)
MARKERS = st.builds(EndTxnMarker, st.integers(1, 2), st.just(0), st.booleans(), st.just(0), st.just(1))


@given(st.lists(st.one_of(BATCHES, BATCHES, MARKERS), max_size=12))
def test_what_is_stored_is_replayed_as_it_was_decided(entries: list[Any]) -> None:
    decided, loaded = HardState(), HardState()
    stored = StoredRecords(loaded)
    for entry in entries:
        if isinstance(entry, EndTxnMarker):
            decided.end_transaction(entry)
            loaded.end_transaction(entry)
        else:
            as_stored = [encode_record(record) for record in entry[0]]
            records = [decode_record(*each) for each in as_stored]
            decided.replay([record for record in records if record is not None], entry[1])
            assert stored.replay(as_stored, entry[1]) == []
    assert loaded.groups == decided.groups
    assert loaded.offsets == decided.offsets
    assert list(loaded.group_ids()) == list(decided.group_ids())
    assert loaded.pending == decided.pending


def test_a_plain_commit_overtakes_a_pending_one() -> None:
    """[141]: it is later in the log, whenever the transaction ends."""
    state, producer = HardState(), ProducerIdAndEpoch(1, 0)
    stored = StoredRecords(state)
    for offset, by in ((1, None), (2, producer), (3, None)):
        stored.replay([encode_record(GroupRecord(OFFSET, committed(offset)))], by)
    state.end_transaction(EndTxnMarker(1, 0, True, 0, 1))
    assert state.offsets["group"]["topic", 0].offset == 3


def test_most_commits_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    monkeypatch.setattr(
        stored_records, "decode_record", lambda *stored: decoded.append(stored) or decode_record(*stored)
    )
    state = HardState()
    keys = [OffsetCommitKey(group="group", topic="topic", partition=partition) for partition in range(9)]
    StoredRecords(state).replay([encode_record(GroupRecord(key, committed(5))) for key in keys], None)
    assert len(decoded) == 1
    assert [value.offset for value in state.offsets["group"].values()] == [5] * 9


class TestMembers:
    @pytest.mark.parametrize("subscription", [b"", b"\0", b"\0\0\xff\xff\xff\xff", b"nonsense"])
    def test_one_whose_subscription_cannot_be_read(self, subscription: bytes) -> None:
        """[164]: the group is loaded with it, and its subscription is unknown."""
        history = loaded(GroupRecord(GROUP, group(replace(member("a"), subscription=subscription))))
        live = history.group()
        assert (live.state, list(live.members)) == (State.STABLE, ["a"])
        assert live.subscribed_topics() is None

    def test_each_has_a_whole_session(self) -> None:
        """[123]"""
        history = loaded(GroupRecord(GROUP, group(member("a"), member("b"))))
        for member_id in "ab":
            assert history.deadline_ms(TimerKey(TimerKind.MEMBER, "group", member_id)) == SESSION_MS
        history.sleep(SESSION_MS)
        assert history.group().state is State.EMPTY

    def test_a_group_that_is_too_large_rebalances_with_all_its_members(self) -> None:
        """[25]"""
        history = loaded(GroupRecord(GROUP, group(member("a"), member("b"))), group_max_size=1)
        live = history.group()
        assert (live.state, list(live.members)) == (State.PREPARING_REBALANCE, ["a", "b"])
        assert live.rebalance is not None
        assert live.rebalance.trigger is Trigger.GROUP_TOO_LARGE

    def test_a_stable_group_goes_on_without_a_rebalance(self, history: History) -> None:
        leader, follower = history.stable(2)
        history.restart()
        assert [leader.heartbeat(), follower.heartbeat()] == [ErrorCode.NONE, ErrorCode.NONE]
        assert follower.commit(7) == ErrorCode.NONE
        assert follower.answer(follower.sync()).assignment == b"1"
        assert follower.error(follower.join()) == ErrorCode.NONE
        assert history.group().state is State.STABLE

    def test_a_generation_that_never_was_stable_is_forgotten(self, history: History) -> None:
        leader, follower = history.stable(2)
        newcomer, pending = history.client(), history.client()
        newcomer.enter()
        leader.join()
        follower.join()
        pending.join()
        assert leader.generation_id == 2
        history.restart()
        live = history.group()
        assert (live.state, live.generation) == (State.STABLE, 1)
        assert leader.heartbeat() == ErrorCode.ILLEGAL_GENERATION
        assert newcomer.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert newcomer.error(newcomer.join()) == ErrorCode.UNKNOWN_MEMBER_ID
        assert pending.error(pending.join()) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_of_the_protocols_only_the_chosen_one_is_known(self, history: History) -> None:
        _, follower = history.stable(2, protocols=protocols("range", "sticky"))
        history.restart()
        other = history.client(protocols=protocols("sticky"))
        assert other.error(other.join()) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert history.is_parked(follower.join()), "it offers more than the record says"
