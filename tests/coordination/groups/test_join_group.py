"""Which clients may join, under which id, and what that does to the group."""

import pytest

from kshim.coordination.decision import Caller, Reply
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.offered import Protocols, joined_names
from kshim.coordination.groups.states import State
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataKey, GroupMetadataValue
from schemas.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from tests.coordination.groups.history import DELAY_MS, SESSION_MS, START_MS, Client, History, protocols


class TestIds:
    def test_an_id_that_nobody_handed_out_is_unknown_and_creates_no_group(self, history: History) -> None:
        """[1]"""
        client = history.client(member_id="made-up")
        assert client.answer(client.join()) == JoinGroupResponse(
            error_code=ErrorCode.UNKNOWN_MEMBER_ID, generation_id=-1, member_id="made-up"
        )
        assert history.groups() == {}
        assert history.journal == []

    def test_a_dynamic_member_is_told_its_id_and_the_group_is_durable(self, history: History) -> None:
        """[2] [5]"""
        client = history.client()
        assert client.answer(client.join()) == JoinGroupResponse(
            error_code=ErrorCode.MEMBER_ID_REQUIRED, generation_id=-1, member_id="client-1"
        )
        assert history.records() == [
            (
                GroupMetadataKey(group="group"),
                GroupMetadataValue(
                    protocol_type="",
                    generation=0,
                    protocol=None,
                    leader=None,
                    current_state_timestamp=START_MS,
                    members=(),
                ),
            )
        ]
        assert history.group().state is State.EMPTY
        token = client.join()
        assert history.is_parked(token)
        history.sleep(DELAY_MS)
        assert client.answer(token) == JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=1,
            protocol_type="consumer",
            protocol_name="range",
            leader="client-1",
            skip_assignment=False,
            member_id="client-1",
            members=(JoinGroupResponseMember(member_id="client-1", metadata=b"topics"),),
        )
        assert len(history.journal) == 1, "a generation is durable with its assignments, not before"

    @pytest.mark.parametrize("version", range(4))
    def test_before_v4_a_member_is_admitted_at_once(self, history: History, version: int) -> None:
        """[4]"""
        client = history.client()
        token = client.join(version)
        assert history.is_parked(token)
        history.sleep(DELAY_MS)
        answer = client.answer(token)
        assert (answer.error_code, answer.generation_id, answer.leader) == (0, 1, "client-1")
        assert [member.member_id for member in answer.members] == ["client-1"]

    def test_in_v0_the_session_timeout_is_the_rebalance_timeout_too(self, history: History) -> None:
        client = history.client(rebalance_timeout_ms=-1, session_timeout_ms=7_000)
        client.enter(0)
        assert history.group().rebalance_timeout_ms() == 7_000

    def test_the_client_id_begins_the_member_id(self, history: History) -> None:
        dynamic, static = history.client(client_id="shop"), history.client(group_instance_id="till-7")
        dynamic.enter()
        static.enter()
        assert (dynamic.member_id, static.member_id) == ("shop-1", "till-7-2")

    def test_an_unknown_id_in_a_group_with_members(self, history: History) -> None:
        """[12]"""
        history.stable(1)
        stranger = history.client(member_id="stranger")
        assert stranger.answer(stranger.join()) == JoinGroupResponse(
            error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id="stranger"
        )
        assert history.group().state is State.STABLE

    def test_a_pending_id_with_an_instance_id_is_an_error_and_stays_pending(self, history: History) -> None:
        """[15]"""
        client = history.client()
        client.join()
        token = client.join(group_instance_id="instance")
        assert client.answer(token) == JoinGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        assert history.group().pending_join == {client.member_id}
        assert history.group().members == {}

    def test_a_member_of_an_empty_group_is_unknown(self, history: History) -> None:
        """[16]"""
        (client,) = history.stable(1)
        client.leave()
        assert client.error(client.join()) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_member_of_a_group_that_counts_as_empty(self, history: History) -> None:
        """[16]: the state decides, not the members. (This state with members never occurs.)"""
        (client,) = history.stable(1)
        history.group().state = State.EMPTY
        request = JoinGroupRequest(
            group_id="group",
            session_timeout_ms=SESSION_MS,
            member_id=client.member_id,
            protocol_type="consumer",
            protocols=client.protocols,
        )
        decision = history.coordinator.handle(Caller(99, 9), request, history.now_ms)
        refusal = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=client.member_id)
        assert (decision.records, decision.replies) == ((), (Reply(99, refusal),))

    @pytest.mark.parametrize("member_id", ["", "stranger"])
    def test_a_dead_group_admits_nobody(self, history: History, member_id: str) -> None:
        """[13]"""
        history.stable(1)
        history.group().transition_to(State.DEAD, history.now_ms)
        client = history.client(member_id=member_id)
        assert client.answer(client.join()) == JoinGroupResponse(
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id=member_id
        )

    def test_a_pending_id_lasts_for_one_session(self, history: History) -> None:
        """[41]"""
        client = history.client()
        client.join()
        history.sleep(SESSION_MS - 1)
        assert history.group().pending_join == {client.member_id}
        history.sleep(1)
        assert history.group().pending_join == set()
        assert client.error(client.join()) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_an_id_that_is_never_used_does_not_disturb_the_group(self, history: History) -> None:
        """[34]"""
        (client,) = history.stable(1, session_timeout_ms=600_000)
        history.client().join()
        history.sleep(SESSION_MS)
        group = history.group()
        assert (group.state, group.generation, group.pending_join) == (State.STABLE, 1, set())
        assert client.heartbeat() == ErrorCode.NONE


class TestProtocols:
    def test_another_protocol_type_is_inconsistent(self, history: History) -> None:
        """[7]"""
        history.stable(1)
        client = history.client(protocol_type="connect")
        assert client.answer(client.join()) == JoinGroupResponse(
            error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id=""
        )

    @pytest.mark.parametrize("member_id", ["", "some-id"])
    @pytest.mark.parametrize("fields", [{"protocol_type": ""}, {"protocols": ()}])
    def test_the_first_member_must_offer_something(
        self, history: History, fields: dict[str, str], member_id: str
    ) -> None:
        """[8] [9]"""
        history.client().join()
        client = history.client(**fields, member_id=member_id)
        assert client.answer(client.join()) == JoinGroupResponse(
            error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id=member_id
        )

    def test_a_name_that_not_all_members_offer_is_inconsistent(self, history: History) -> None:
        """[10]"""
        history.client(protocols=protocols("range")).enter()
        client = history.client(protocols=protocols("roundrobin"))
        assert client.error(client.join()) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_an_id_stays_pending_when_its_second_join_is_inconsistent(self, history: History) -> None:
        """[11]"""
        client = history.client()
        client.join()
        token = client.join(protocols=())
        assert client.answer(token) == JoinGroupResponse(
            error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id=client.member_id
        )
        assert history.group().pending_join == {client.member_id}
        assert history.is_parked(client.join())

    def test_a_single_member_cannot_change_to_other_protocols(self, history: History) -> None:
        (client,) = history.stable(1)
        client.protocols = protocols("roundrobin")
        assert client.error(client.join()) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        client.protocols = protocols("roundrobin", "range")
        assert client.error(client.join()) == ErrorCode.NONE

    def test_a_name_offered_twice_counts_once(self, history: History) -> None:
        history.stable(2, protocols=protocols("range", "range"))
        assert history.group().protocol_name == "range"

    def test_the_answers_name_type_and_protocol(self, history: History) -> None:
        """[14]"""
        leader, follower = history.client(), history.client()
        tokens = [leader.enter(), follower.enter()]
        history.sleep(2 * DELAY_MS)
        for token in tokens:
            answer = history.answer(token)
            assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
        assert [len(history.answer(token).members) for token in tokens] == [2, 0]

    def test_most_votes_decide(self) -> None:
        """[107]"""
        group = group_of(("a", "b"), ("b", "a"), ("b", "a", "c"))
        assert group.select_protocol() == "b"

    def test_only_what_all_offer_can_be_chosen(self) -> None:
        """[107]"""
        group = group_of(("a", "b"), ("a", "b"), ("b",))
        assert group.select_protocol() == "b"

    @pytest.mark.parametrize(
        ("one", "other", "chosen"),
        [("a", "b", "a"), ("range", "sticky", "sticky"), ("range", "roundrobin", "range")],
    )
    def test_a_tie_comes_out_as_in_kafka(self, one: str, other: str, chosen: str) -> None:
        """[107]: whichever member leads, and whichever came first."""
        for group in (group_of((one, other), (other, one)), group_of((other, one), (one, other))):
            assert group.select_protocol() == chosen

    def test_what_a_group_supports(self) -> None:
        """[108]"""
        empty = ClassicGroup("group", 0)
        assert empty.supports("any", joined_names(["any"]))
        assert not empty.supports("", joined_names(["any"]))
        assert not empty.supports("any", joined_names([]))
        group = group_of(("a", "b"), ("b",))
        assert group.supports("consumer", joined_names("bc"))
        assert not group.supports("consumer", joined_names("ac"))
        assert not group.supports("connect", joined_names("b"))


class TestRejoining:
    def test_while_completing_the_same_metadata_is_answered_at_once(self, history: History) -> None:
        """[43]"""
        leader, follower = completing(history, 2)
        for client, members in ((leader, 2), (follower, 0)):
            answer = client.answer(client.join())
            assert (answer.error_code, answer.generation_id, len(answer.members)) == (0, 1, members)
        assert history.group().state is State.COMPLETING_REBALANCE

    def test_while_completing_other_metadata_starts_over(self, history: History) -> None:
        """[43]"""
        leader, follower = completing(history, 2)
        follower.protocols = protocols("range", metadata=b"other")
        assert history.is_parked(follower.join())
        assert history.group().state is State.PREPARING_REBALANCE
        assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS

    def test_the_leader_of_a_stable_group_always_rebalances(self, history: History) -> None:
        """[42] [44]"""
        leader, follower = history.stable(2)
        token = leader.join()
        assert history.is_parked(token)
        assert follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        follower.join()
        assert (leader.generation_id, follower.generation_id) == (2, 2)

    def test_a_follower_with_other_protocols_rebalances(self, history: History) -> None:
        """[45]"""
        leader, follower = history.stable(2)
        follower.protocols = protocols("range", "roundrobin")
        assert history.is_parked(follower.join())
        assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS

    def test_a_follower_with_the_same_protocols_does_not(self, history: History) -> None:
        """[46]"""
        leader, follower = history.stable(2)
        journal = len(history.journal)
        assert follower.answer(follower.join()) == JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=1,
            protocol_type="consumer",
            protocol_name="range",
            leader=leader.member_id,
            member_id=follower.member_id,
            members=(),
        )
        assert history.group().state is State.STABLE
        assert follower.answer(follower.sync()).assignment == b"1"
        assert len(history.journal) == journal

    @pytest.mark.parametrize(
        "other",
        [
            protocols("range", "roundrobin", metadata=b"other"),
            protocols("roundrobin", "range"),
            protocols("range"),
            protocols("range", "roundrobin", "sticky"),
            (*protocols("range"), JoinGroupRequestProtocol(name="roundrobin", metadata=b"other")),
        ],
        ids=["bytes", "order", "fewer", "more", "bytes of one"],
    )
    def test_any_difference_in_the_protocols_counts(
        self, history: History, other: tuple[JoinGroupRequestProtocol, ...]
    ) -> None:
        """[47]"""
        _, follower = history.stable(2, protocols=protocols("range", "roundrobin"))
        follower.protocols = other
        assert history.is_parked(follower.join())

    def test_new_timeouts_count_from_the_next_rebalance_on(self, history: History) -> None:
        _, follower = history.stable(2)
        follower.session_timeout_ms = 20_000
        follower.join()
        assert history.group().members[follower.member_id].session_timeout_ms == SESSION_MS
        follower.protocols = protocols("range", metadata=b"other")
        follower.join()
        assert history.group().members[follower.member_id].session_timeout_ms == 20_000

    def test_the_older_of_two_parked_joins_is_sent_back(self, history: History) -> None:
        leader, follower = history.stable(2)
        first = leader.join()
        second = leader.join()
        assert leader.answer(first) == JoinGroupResponse(
            error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=leader.member_id
        )
        follower.join()
        assert leader.error(second) == ErrorCode.NONE


class TestMaxSize:
    def test_a_full_group_takes_nobody(self) -> None:
        """[19]"""
        history = History(group_max_size=2)
        history.stable(2)
        client = history.client()
        assert client.answer(client.join()) == JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED)

    def test_ids_are_handed_out_freely_but_only_so_many_join(self) -> None:
        """[20]"""
        history = History(group_max_size=10)
        clients = [history.client() for _ in range(11)]
        for client in clients:
            assert client.error(client.join()) == ErrorCode.MEMBER_ID_REQUIRED
        tokens = [client.join() for client in clients]
        assert history.answer(tokens[10]) == JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED)
        assert history.group().pending_join == set()
        history.sleep(2 * DELAY_MS)
        assert {history.answer(token).error_code for token in tokens[:10]} == {0}
        for client in clients[:10]:
            assert client.error(client.join()) == ErrorCode.NONE
        assert clients[10].error(clients[10].join()) == ErrorCode.GROUP_MAX_SIZE_REACHED

    def test_without_ids_the_last_is_refused_at_once(self) -> None:
        """[21]"""
        history = History(group_max_size=10)
        tokens = [history.client().join(3) for _ in range(11)]
        assert history.parked == set(tokens[:10])
        assert history.answer(tokens[10]).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED

    def test_static_members_count(self) -> None:
        """[22]"""
        history = History(group_max_size=10)
        tokens = [history.client(group_instance_id=f"i{n}").join() for n in range(11)]
        assert history.parked == set(tokens[:10])
        assert history.answer(tokens[10]).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED

    def test_a_parked_member_may_join_again(self) -> None:
        """[23]"""
        history = History(group_max_size=3)
        clients = [history.client() for _ in range(3)]
        for client in clients:
            client.enter()
        tokens = [client.join() for client in clients]
        assert history.parked == set(tokens)

    def test_the_last_to_join_a_group_that_became_too_large_are_refused(self) -> None:
        """[24]"""
        history = History()
        clients = history.stable(12, session_timeout_ms=60_000)
        history.settings = history.settings._replace(group_max_size=10)
        history.restart()
        tokens = [client.join() for client in clients]
        errors = [client.error(token) for client, token in zip(clients, tokens, strict=True)]
        assert errors == [ErrorCode.NONE] * 10 + [ErrorCode.GROUP_MAX_SIZE_REACHED] * 2
        assert list(history.group().members) == [client.member_id for client in clients[:10]]

    def test_a_static_member_comes_back_to_a_full_group(self) -> None:
        """It is a member already; Apache Kafka refuses it here."""
        history = History(group_max_size=2)
        _, follower = history.stable(2, static=True)
        follower.member_id = ""
        assert follower.error(follower.join()) == ErrorCode.NONE

    def test_a_static_member_takes_its_parked_place_in_a_full_join_phase(self) -> None:
        history = History(group_max_size=2)
        history.client(group_instance_id="one").enter()
        two = history.client(group_instance_id="two")
        first, second = two.join(), two.join()
        assert two.error(first) == ErrorCode.FENCED_INSTANCE_ID
        assert history.is_parked(second)

    def test_a_pending_id_that_is_refused_no_longer_holds_up_the_others(self) -> None:
        history = History(group_max_size=2)
        (leader,) = history.stable(1)
        late, other = history.client(), history.client()
        late.join()
        other.enter()
        token = leader.join()
        assert history.is_parked(token), "the pending id is waited for"
        assert late.error(late.join()) == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert leader.error(token) == ErrorCode.NONE


class TestMembers:
    def test_pending_ids_and_members_are_disjoint(self, history: History) -> None:
        """[112]"""
        client = history.client()
        client.join()
        group = history.group()
        assert (group.pending_join, set(group.members)) == ({client.member_id}, set())
        client.join()
        assert (group.pending_join, set(group.members)) == (set(), {client.member_id})
        client.leave()
        assert (group.pending_join, set(group.members)) == (set(), set())

    @pytest.mark.parametrize(
        ("is_new", "join", "sync", "waits"),
        [
            (True, True, False, False),
            (True, False, True, False),
            (False, True, False, True),
            (False, False, True, True),
            (False, False, False, False),
        ],
    )
    def test_when_a_member_counts_as_waiting(self, is_new: bool, join: bool, sync: bool, waits: bool) -> None:
        """[115]"""
        member = new_member("member", "range")
        member.is_new = is_new
        member.parked_join = 1 if join else None
        member.parked_sync = 2 if sync else None
        assert member.is_waiting is waits

    def test_a_member_votes_for_the_first_it_offers_among_the_candidates(self) -> None:
        """[115]"""
        assert group_of(("a", "b", "c"), ("c", "b")).votes() == {"b": 1, "c": 1}


def completing(history: History, members: int) -> list[Client]:
    """Members that have joined and not synced."""
    clients = [history.client() for _ in range(members)]
    for client in clients:
        client.enter()
    history.sleep(2 * DELAY_MS)
    assert history.group().state is State.COMPLETING_REBALANCE
    return clients


def new_member(member_id: str, *names: str) -> Member:
    return Member(
        group_id="group",
        member_id=member_id,
        group_instance_id=None,
        client_id="client",
        client_host="/127.0.0.1",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=60_000,
        protocols=Protocols.of(protocols(*names)),
    )


def group_of(*offers: tuple[str, ...]) -> ClassicGroup:
    """A group whose members offer these names; the first one leads."""
    group = ClassicGroup("group", 0, state=State.PREPARING_REBALANCE)
    for n, names in enumerate(offers):
        group.add(new_member(f"member-{n}", *names), "consumer")
    return group
