"""Bad requests are answered as by Apache Kafka 4.2, and cost no undue memory.

Other groups of the shard do not notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kshim.coordination.groups.join_group import LONGEST_PREFIX_BYTES
from kshim.coordination.groups.refusals import DescribeGroup
from kshim.coordination.groups.settings import Settings
from kshim.coordination.groups.sizes import batch_bytes, group_fits
from kshim.coordination.groups.states import State
from kshim.coordination.groups.timers import ShardTimer
from kshim.coordination.shards import partition_for
from schemas.error_code import ErrorCode
from schemas.messages.join_group import JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.coordination.groups import invariants
from tests.coordination.groups.history import REBALANCE_MS, SESSION_MS, History, assign, protocols

MIB = 1 << 20
CHECK = invariants.check
NEIGHBOUR = next(f"g{n}" for n in range(9) if partition_for(f"g{n}", 2) == partition_for("group", 2))
"""Another group of the same shard."""


@pytest.fixture
def history() -> Iterator[History]:
    """A history with a second, stable group, which must be unchanged in the end."""
    history = History()
    neighbours = history.stable(2, NEIGHBOUR, session_timeout_ms=1_800_000)
    yield history
    assert [client.heartbeat() for client in neighbours] == [ErrorCode.NONE] * 2
    assert neighbours[0].commit(1) == ErrorCode.NONE
    assert history.group(NEIGHBOUR).generation == 1


def commit_of(count: int, metadata: str) -> OffsetCommitRequest:
    """A commit for `count` partitions of one topic."""
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=n, committed_offset=n, committed_metadata=metadata)
        for n in range(count)
    )
    topic = OffsetCommitRequestTopic(name="topic", partitions=partitions)
    return OffsetCommitRequest(group_id="group", topics=(topic,))


def stored_bytes(history: History) -> int:
    return sum(len(repr(record)) for record in history.records())


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0",
        b"\xff" * 20,
        b"\0\1\xff\xff\xff\xff",
        b"\0\0\x7f\xff\xff\xff",
        b"\x7f\xff\0\0\0\0",
        b"m" * 99,
    ],
)
def test_a_subscription_that_means_nothing(history: History, metadata: bytes) -> None:
    """The bytes are passed on unread. Apache Kafka never answers some of these."""
    leader, follower = history.client(), history.client()
    for client in (leader, follower):
        client.protocols = protocols("range", metadata=metadata)
    tokens = [leader.enter(), follower.enter()]
    history.sleep(6_000)
    first, second = map(history.answer, tokens)
    assert (first.error_code, second.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert [member.metadata for member in first.members] == [metadata] * 2
    assign([leader, follower])
    assert history.ask(DescribeGroup("group")).group_state == "Stable"
    assert leader.commit(1) == ErrorCode.NONE


def test_an_assignment_that_means_nothing(history: History) -> None:
    """The bytes are passed on unread."""
    (client,) = history.stable(1)
    client.join()
    assert client.answer(client.sync({client: b"\xff\xffgarbage"})).assignment == b"\xff\xffgarbage"


def test_a_leader_that_assigns_to_strangers(history: History) -> None:
    """Strangers that it names get nothing, and nothing is stored for them."""
    leader, follower = history.stable(2)
    leader.join()
    follower.join()
    strangers = [history.client(member_id=f"stranger-{n}") for n in range(1_000)] + [history.client()]
    before = stored_bytes(history)
    plan = {stranger: bytes(1_000) for stranger in strangers} | {follower: b"f"}
    assert leader.answer(leader.sync(plan)).assignment == b""
    assert follower.answer(follower.sync()).assignment == b"f"
    assert stored_bytes(history) - before < 1_000


def test_ten_thousand_protocols(history: History) -> None:
    client = history.client(protocols=protocols(*map("p{}".format, range(10_000)), metadata=b""))
    other = history.client(protocols=protocols(*map("q{}".format, range(10_000)), metadata=b""))
    client.enter()
    assert other.error(other.join()) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    history.sleep(6_000)
    assign([client])
    assert history.group().protocol_name == "p0"
    client.leave()
    assert not history.group().offered


def test_a_protocol_that_is_named_thrice(history: History) -> None:
    """The first one counts. Apache Kafka never answers."""
    thrice = tuple(
        JoinGroupRequestProtocol(name="range", metadata=metadata) for metadata in (b"a", b"b", b"c")
    )
    (client,) = history.stable(1, protocols=thrice)
    assert history.group().members[client.member_id].metadata("range") == b"a"


TOO_LONG = "\N{REPLACEMENT CHARACTER}" * 10_923
"""What 10,923 bytes that are not UTF-8 are decoded to; encoded again, it is two bytes too long for a
string."""


@pytest.mark.parametrize(
    "named",
    [{"group_id": TOO_LONG}, {"protocol_type": TOO_LONG}, {"protocols": protocols("range", TOO_LONG)}],
    ids=lambda named: next(iter(named)),
)
def test_a_name_that_cannot_be_written(history: History, named: dict[str, Any]) -> None:
    before = stored_bytes(history)
    client = history.client(**named)
    assert client.error(client.join()) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert stored_bytes(history) == before


def test_an_offset_of_a_group_whose_name_cannot_be_written(history: History) -> None:
    before = stored_bytes(history)
    assert history.client(group_id=TOO_LONG).commit(1) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert stored_bytes(history) == before


class TestTooLargeToStore:
    """A group's record and a commit are each one batch, whose size message.max.bytes limits."""

    @pytest.mark.parametrize("size", [2 * MIB, 16 * MIB])
    def test_a_subscription(self, history: History, size: int) -> None:
        client = history.client(protocols=protocols("range", metadata=bytes(size)))
        client.enter()
        history.sleep(6_000)
        before = stored_bytes(history)
        assert client.error(client.sync({client: b"all"})) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert history.group().state is State.PREPARING_REBALANCE
        assert client.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        assert stored_bytes(history) == before
        history.sleep(REBALANCE_MS)
        assert history.group().members == {}

    def test_an_assignment(self, history: History) -> None:
        """[80]: all parked members get the error and no assignment."""
        leader, follower = history.stable(2)
        leader.join()
        follower.join()
        waiting = follower.sync()
        error = leader.error(leader.sync({leader: b"a", follower: bytes(2 * MIB)}))
        assert error == ErrorCode.UNKNOWN_SERVER_ERROR
        assert history.answer(waiting).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert history.answer(waiting).assignment == b""
        assert history.group().state is State.PREPARING_REBALANCE
        for client in (leader, follower):
            client.join()
        assign([leader, follower])
        assert history.group().state is State.STABLE, "a smaller one is stored"

    def test_what_a_static_member_comes_back_with(self, history: History) -> None:
        history.stable(2, static=True)
        again = history.client(
            group_instance_id="instance-1", protocols=protocols("range", metadata=bytes(2 * MIB))
        )
        assert history.is_parked(again.join())
        assert history.group().state is State.PREPARING_REBALANCE

    @pytest.mark.parametrize(("bytes_each", "fits"), [(1_000, True), (2_000, False), (4_000, False)])
    def test_a_commit(self, history: History, bytes_each: int, fits: bool) -> None:
        """[87]: all of it or nothing."""
        before = len(history.records())
        answer = history.ask(commit_of(600, "m" * bytes_each))
        expected = ErrorCode.NONE if fits else ErrorCode.UNKNOWN_SERVER_ERROR
        assert {partition.error_code for partition in answer.topics[0].partitions} == {expected}
        assert len(history.records()) - before == (600 if fits else 0)
        assert ("group" in history.groups()) == fits

    def test_a_transaction_s_commit(self, history: History) -> None:
        client = history.client()
        request = client.txn_request(dict.fromkeys(range(600), 1), 7, metadata="m" * 2_000)
        answer = history.ask(request)
        assert {p.error_code for p in answer.topics[0].partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}
        assert client.fetched(stable=True).error_code == ErrorCode.NONE
        assert client.txn_commit(1, 7) == ErrorCode.NONE


class TestSizesToTheByte:
    @pytest.mark.parametrize("metadata", ["x" * 1_000, "\u20ac" * 1_000, ""])
    @pytest.mark.parametrize("count", [1, 20])
    def test_of_a_commit(self, count: int, metadata: str) -> None:
        request = commit_of(count, metadata)
        history = History()
        history.ask(request)
        size = batch_bytes(history.records())
        for limit, error in ((size, ErrorCode.NONE), (size - 1, ErrorCode.UNKNOWN_SERVER_ERROR)):
            answer = History(message_max_bytes=limit).ask(request)
            assert {partition.error_code for partition in answer.topics[0].partitions} == {error}

    def test_of_a_group(self) -> None:
        history = History()
        history.stable(2)
        size = batch_bytes(history.records()[-1:])
        assert group_fits(history.group(), Settings(message_max_bytes=size))
        assert not group_fits(history.group(), Settings(message_max_bytes=size - 1))


class TestLongNames:
    @pytest.mark.parametrize("version", [3, 9])
    def test_a_client_id_that_leaves_no_room_for_a_member_id(self, history: History, version: int) -> None:
        client = history.client(client_id="c" * (LONGEST_PREFIX_BYTES + 1))
        answer = client.answer(client.join(version))
        assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
        assert history.group().members == {}
        assert history.group().pending_join == set()

    def test_an_instance_id_that_leaves_none(self, history: History) -> None:
        client = history.client(group_instance_id="ü" * (LONGEST_PREFIX_BYTES // 2 + 1))
        assert client.error(client.join()) == ErrorCode.UNKNOWN_SERVER_ERROR

    def test_the_longest_that_there_is_room_for(self, history: History) -> None:
        (client,) = history.stable(1, client_id="c" * LONGEST_PREFIX_BYTES)
        assert client.heartbeat() == ErrorCode.NONE

    @pytest.mark.parametrize("length", [249, 250, 32_767])
    def test_a_group_id(self, history: History, length: int) -> None:
        client = history.client("g" * length)
        client.enter()
        history.sleep(6_000)
        assign([client])
        assert client.commit(5) == ErrorCode.NONE
        history.restart()
        assert client.committed() == 5
        unknown = history.ask(DescribeGroup("h" * length))
        assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert len(unknown.error_message) < 32_767


class TestStorms:
    @pytest.fixture(autouse=True)
    def seldom_checked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Checks the invariants only at the end, because each check takes as long as there are members."""
        monkeypatch.setattr(invariants, "check", lambda history: None)

    def test_a_thousand_members_join_at_once(self, history: History) -> None:
        """All form one generation; when they have left, nothing of them remains."""
        clients = [history.client(client_id=f"c{n}") for n in range(1_000)]
        for client in clients:
            client.enter()
        history.sleep(6_000)
        assert history.group().generation == 1
        assert {client.generation_id for client in clients} == {1}
        leader = next(client for client in clients if client.member_id == history.group().leader)
        for client in clients:
            client.sync({leader: b"all"} if client is leader else None)
        assert history.group().state is State.STABLE
        CHECK(history)
        identities = tuple(MemberIdentity(member_id=client.member_id) for client in clients)
        history.ask(LeaveGroupRequest(group_id="group", members=identities))
        CHECK(history)
        group = history.group()
        assert (group.state, group.members, len(group.offered)) == (State.EMPTY, {}, 0)
        timers = history.coordinator._timers._deadlines_ms
        of_groups = [timer.group_id for timer in timers if not isinstance(timer, ShardTimer)]
        assert set(of_groups) == {NEIGHBOUR}

    def test_a_thousand_ids_that_nobody_uses(self, history: History) -> None:
        for _ in range(1_000):
            history.client().join()
        assert len(history.group().pending_join) == 1_000
        CHECK(history)
        history.sleep(SESSION_MS)
        assert history.group().pending_join == set()

    def test_a_member_that_never_syncs(self, history: History) -> None:
        """[82]: it is removed after its rebalance timeout, though it sends heartbeats."""
        client = history.client()
        client.enter()
        history.sleep(6_000)
        for _ in range(REBALANCE_MS // 5_000 - 1):
            history.sleep(5_000)
            assert client.heartbeat() == ErrorCode.NONE
        history.sleep(5_000)
        assert client.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert history.group().state is State.EMPTY

    def test_one_member_that_joins_again_and_again(self, history: History) -> None:
        """Each JoinGroup replaces the one before, which is answered."""
        client, silent = history.stable(2)
        tokens = [client.join() for _ in range(1_000)]
        assert [history.is_parked(token) for token in tokens] == [False] * 999 + [True]
        assert history.group().awaiting_join == 1
        assert silent.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
