"""Processes that divide the shards among them; the group is coordinated as Kafka does it, by kshim itself."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed

from kshim.configs.endpoint import Endpoint
from kshim.upstream.link import LinkError
from kshim.upstream.shards.membership import Assigned, Membership, Ours
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest
from schemas.messages.sync_group import SyncGroupRequest
from tests.api.harness import context, result
from tests.coordination.held_runtime import Server

TOPIC = "__kshim_groups"
SESSION_S = 6.0
VERSIONS = {JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4, LeaveGroupRequest: 5}
LOST = LinkError("upstream broker 10.0.0.1:9092 closed the connection")


class Link:
    """To the coordinator."""

    def __init__(self, upstream: Upstream) -> None:
        self.is_open = True
        self._upstream = upstream

    def ask(self, request: Any, **_: Any) -> Deferred[Any]:
        if not self.is_open or self._upstream.is_lost:
            self.is_open = False
            return fail(LOST)
        answer = self._upstream.server.runtime.submit(context(VERSIONS[type(request)]), request)
        self._upstream.server.runtime.end_turn()
        return answer if isinstance(answer, Deferred) else succeed(answer)

    def close(self) -> None:
        self.is_open = False


class Upstream:
    """A coordinator of groups, and a clock."""

    def __init__(self) -> None:
        self.server = Server()
        self.server.journal.holds = False
        self.clock = self.server.clock
        self.error = ErrorCode.NONE
        self.is_lost = False

    def ask(self, request: FindCoordinatorRequest) -> Deferred[FindCoordinatorResponse]:
        found = Coordinator(key=request.key, node_id=1, host="10.0.0.1", port=9092, error_code=self.error)
        return succeed(FindCoordinatorResponse(coordinators=(found,)))

    def connect(self, address: Endpoint, timeout_s: float) -> Deferred[Any]:
        return succeed(Link(self))

    def pass_s(self, for_s: float) -> None:
        for _ in range(round(for_s / 0.1)):
            self.clock.advance(0.1)


class Process:
    def __init__(self, upstream: Upstream, host: str, partitions: int = 4) -> None:
        self.assigned: list[Assigned] = []
        self.led: set[int] = set()
        address = {"PLAINTEXT": Endpoint(host, 9092)}
        self.membership = Membership(
            upstream.clock,
            upstream,
            TOPIC,
            partitions,
            "__kshim",
            int(SESSION_S * 1000),
            lambda: Ours(address, sorted(self.led)),
            self._assign,
        )
        self.membership.start()

    def _assign(self, assigned: Assigned) -> None:
        self.assigned.append(assigned)
        self.led = set(assigned.ours)


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


def test_one_process_is_to_lead_all(upstream: Upstream) -> None:
    process = Process(upstream, "a")
    upstream.pass_s(4)
    (assigned,) = process.assigned
    assert assigned.ours == {0, 1, 2, 3}
    assert [fellow.addresses for fellow in assigned.everybody] == [{"PLAINTEXT": Endpoint("a", 9092)}]


def test_a_second_one_gets_a_half_and_all_know_where_the_others_are(upstream: Upstream) -> None:
    first = Process(upstream, "a")
    upstream.pass_s(4)
    second = Process(upstream, "b")
    upstream.pass_s(2)
    assert first.led == {0, 1}, "it keeps what it can"
    assert second.led == {2, 3}
    for process in (first, second):
        leaders = process.assigned[-1].leaders
        hosts = [leaders[shard].addresses["PLAINTEXT"].host for shard in range(4)]
        assert hosts == ["a", "a", "b", "b"]


def test_when_one_is_gone_the_other_leads_all(upstream: Upstream) -> None:
    first, second = Process(upstream, "a"), Process(upstream, "b")
    upstream.pass_s(8)
    assert (len(first.led), len(second.led)) == (2, 2)
    result(Deferred.fromCoroutine(second.membership.stop()))
    upstream.pass_s(1)
    assert first.led == {0, 1, 2, 3}


def test_whoever_is_not_heard_is_out_after_its_session_and_joins_again(upstream: Upstream) -> None:
    process = Process(upstream, "a")
    upstream.pass_s(4)
    upstream.is_lost = True
    upstream.pass_s(SESSION_S + 1)
    assert len(process.assigned) == 1
    upstream.is_lost = False
    upstream.pass_s(5)
    assert len(process.assigned) == 2


def test_a_short_silence_changes_nothing(upstream: Upstream) -> None:
    process = Process(upstream, "a")
    upstream.pass_s(4)
    upstream.is_lost = True
    upstream.pass_s(2)
    upstream.is_lost = False
    upstream.pass_s(10)
    assert len(process.assigned) == 1


def test_it_asks_until_there_is_a_coordinator(upstream: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    upstream.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    process = Process(upstream, "a")
    upstream.pass_s(2)
    upstream.error = ErrorCode.NONE
    upstream.pass_s(4)
    assert len(process.assigned) == 1
    assert caplog.text.count("group __kshim of the upstream: COORDINATOR_NOT_AVAILABLE") == 1


def test_others_in_the_group_are_told_of(upstream: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    joining = upstream.server.runtime.submit(
        context(3),
        JoinGroupRequest(
            group_id="__kshim",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id="",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        ),
    )
    upstream.pass_s(4)
    result(joining)
    Process(upstream, "a")
    upstream.pass_s(4)
    assert "INCONSISTENT_GROUP_PROTOCOL, other clients are members of it: stop them" in caplog.text
