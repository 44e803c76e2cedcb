"""Processes that divide the shards among them; the group is coordinated as Kafka does it, by kshim itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed

from kshim.configs.endpoint import Endpoint
from kshim.upstream.link import LinkError
from kshim.upstream.shards import membership
from kshim.upstream.shards.membership import Assigned, Membership, Ours
from kshim.upstream.shards.said import Said
from schemas.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest
from schemas.messages.sync_group import SyncGroupRequest
from tests.api.harness import context, later, result
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
        answer = later(self._upstream.server.runtime.submit(context(VERSIONS[type(request)]), request))
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
    def __init__(self, upstream: Upstream, host: str, partitions: int = 4, **settings: str) -> None:
        """settings: by the names of properties, with "_" for "."."""
        self.assigned: list[Assigned] = []
        self.led: set[int] = set()
        self.silent: list[int] = []
        named = {name.replace("_", "."): value for name, value in settings.items()}
        said = Said(
            {"PLAINTEXT": Endpoint(host, 9092)}, partitions, {"upstream.groups.topic": TOPIC, **named}
        )
        self.membership = Membership(
            upstream.clock,
            upstream,
            "__kshim",
            int(SESSION_S * 1000),
            lambda: Ours(replace(said, silent=self.silent), sorted(self.led)),
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
    for error in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR) * 3:
        upstream.error = error
        upstream.pass_s(1)
    upstream.error = ErrorCode.NONE
    upstream.pass_s(4)
    assert len(process.assigned) == 1
    for error in ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"):
        assert caplog.text.count(f"group __kshim of the upstream: {error}") == 1, "by turns, too"


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


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_other_settings_are_said_once_by_each(upstream: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    first = Process(upstream, "a", upstream_groups_lease_ms="400")
    second = Process(upstream, "b", upstream_groups_lease_ms="800")
    upstream.pass_s(8)
    assert sorted(warnings(caplog)) == [
        "kshim at a:9092 has upstream.groups.lease.ms=400, and here it is 800: all should have the same",
        "kshim at b:9092 has upstream.groups.lease.ms=800, and here it is 400: all should have the same",
    ]
    assert (len(first.led), len(second.led)) == (2, 2), "they share the shards nevertheless"


def test_those_with_another_topic_share_nothing(upstream: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    first = Process(upstream, "a")
    other = Process(upstream, "b", partitions=3, upstream_groups_topic="other")
    upstream.pass_s(8)
    assert (first.led, other.led) == ({0, 1, 2, 3}, {0, 1, 2})
    for process in (first, other):
        assert len(process.assigned[-1].everybody) == 1
    line = f"kshim at b:9092 has upstream.groups.topic=other, and here it is {TOPIC}: they share no groups"
    assert line in warnings(caplog)


def test_shards_that_do_not_answer_one_process_go_to_the_other(upstream: Upstream) -> None:
    first, second = Process(upstream, "a"), Process(upstream, "b")
    upstream.pass_s(8)
    before = len(second.assigned)
    first.silent = [min(first.led)]
    first.membership.tell()
    upstream.pass_s(1)
    assert (len(first.led), len(second.led)) == (1, 3)
    assert first.membership.told_silent == set(first.silent)
    assert len(second.assigned) == before + 1
    first.silent = []
    first.membership.tell()
    upstream.pass_s(1)
    assert (len(first.led), len(second.led)) == (2, 2)
    assert first.membership.told_silent == set()


OLD = b'{"PLAINTEXT":"old:9092"}'
"""What a member said of itself before there were formats."""


@pytest.mark.parametrize(
    "user_data", [OLD, b"[1]", b"{", b"[" * 100_000, b'{"format":2,"members":"new:9092"}']
)
def test_a_member_of_another_build_is_left_out(
    upstream: Upstream, caplog: pytest.LogCaptureFixture, user_data: bytes
) -> None:
    process = Process(upstream, "a")
    upstream.pass_s(4)
    joined = join_as(upstream, encode_subscription(ConsumerProtocolSubscription(user_data=user_data)))
    upstream.pass_s(SESSION_S)
    assert process.led == {0, 1, 2, 3}
    at, its_format = ("old:9092", 0) if user_data == OLD else ("new:9092", 2)
    at, its_format = (at, its_format) if b"9092" in user_data else ("an unknown address", 0)
    assert warnings(caplog) == [
        f"kshim at {at} is another build: what it says of itself has format {its_format}, and here it is 1; "
        "run the same build everywhere"
    ]
    result(joined)


def test_a_member_that_says_nothing_is_left_out(upstream: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    process = Process(upstream, "a")
    upstream.pass_s(4)
    join_as(upstream, b"")
    upstream.pass_s(SESSION_S)
    assert process.led == {0, 1, 2, 3}
    (line,) = warnings(caplog)
    assert "is no kshim, or another build" in line


def join_as(upstream: Upstream, metadata: bytes) -> Any:
    """A member by hand, which joins twice as it has to."""
    request = JoinGroupRequest(
        group_id="__kshim",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=1_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name=membership.PROTOCOL, metadata=metadata),),
    )
    return upstream.server.runtime.submit(context(3), request)


@pytest.mark.parametrize(
    ("user_data", "said"),
    [
        (b'[{"addresses":{"PLAINTEXT":"old:9092"},"shards":[0]}]', "kshim at old:9092 is another build"),
        (b'[{"addresses":"old:9092","shards":[0]}]', "kshim at old:9092 is another build"),
        (b"null", "kshim at an unknown address is another build"),
    ],
)
def test_an_assignment_of_another_build_is_one_line(
    upstream: Upstream, caplog: pytest.LogCaptureFixture, user_data: bytes, said: str
) -> None:
    caplog.set_level("INFO")
    process = Process(upstream, "a")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(membership, "encode_shares", lambda _: user_data)
        upstream.pass_s(4)
    assert process.assigned == []
    assert caplog.text.count(said) == 1
    assert "Traceback" not in caplog.text
