"""The two tables: which state may follow which, and how each state answers a request."""

from itertools import product

import pytest

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.refusals import DeleteGroup
from kshim.coordination.groups.states import ANSWERS, CAN_REBALANCE, TRANSITIONS, Action, State
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from tests.coordination.groups.history import Client, History, protocols

KAFKA_ALLOWS = {
    ("PreparingRebalance", "Empty"),
    ("Empty", "PreparingRebalance"),
    ("CompletingRebalance", "PreparingRebalance"),
    ("Stable", "PreparingRebalance"),
    ("PreparingRebalance", "CompletingRebalance"),
    ("CompletingRebalance", "Stable"),
    *((state.value, "Dead") for state in State),
}


@pytest.mark.parametrize(("before", "after"), list(product(State, State)))
def test_only_the_transitions_of_the_table_are_taken(before: State, after: State) -> None:
    """[106]"""
    group = ClassicGroup("group", state_timestamp_ms=1, state=before)
    if (before.value, after.value) in KAFKA_ALLOWS:
        group.transition_to(after, 2)
        assert (group.state, group.state_timestamp_ms) == (after, 2)
    else:
        with pytest.raises(AssertionError):
            group.transition_to(after, 2)
        assert (group.state, group.state_timestamp_ms) == (before, 1)


def test_every_state_has_its_row_in_every_table() -> None:
    assert TRANSITIONS.keys() == set(State)
    assert all(answers.keys() == set(State) for answers in ANSWERS.values())


def test_a_rebalance_can_start_in_every_state_that_is_not_one_already() -> None:
    assert {State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE} == CAN_REBALANCE


@pytest.mark.parametrize("state", State)
class TestAnswers:
    """The tables give the answers that a member of the right generation gets."""

    def test_of_join_group(self, history: History, state: State) -> None:
        member = in_state(history, state)
        token = member.join()
        answer = ANSWERS[ApiKey.JOIN_GROUP][state]
        if answer is Action.PARK:
            assert history.is_parked(token)
        elif answer is Action.COMPARE:
            assert member.error(token) == ErrorCode.NONE
            member.protocols = protocols("range", metadata=b"other")
            assert history.is_parked(member.join())
            assert history.group().state is State.PREPARING_REBALANCE
        else:
            assert member.error(token) == answer

    def test_of_sync_group(self, history: History, state: State) -> None:
        member = in_state(history, state)
        token = member.sync()
        answer = ANSWERS[ApiKey.SYNC_GROUP][state]
        if answer is Action.PARK:
            assert history.is_parked(token)
        else:
            expected = ErrorCode.NONE if answer is Action.ANSWER else answer
            assert member.error(token) == expected

    def test_of_heartbeat(self, history: History, state: State) -> None:
        assert in_state(history, state).heartbeat() == ANSWERS[ApiKey.HEARTBEAT][state]

    def test_of_offset_commit(self, history: History, state: State) -> None:
        member = in_state(history, state)
        answer = ANSWERS[ApiKey.OFFSET_COMMIT][state]
        assert member.commit(7) == (ErrorCode.NONE if answer is Action.ACCEPT else answer)
        assert member.committed() == (7 if answer is Action.ACCEPT else -1)

    def test_of_delete_groups(self, history: History, state: State) -> None:
        in_state(history, state)
        answer = ANSWERS[ApiKey.DELETE_GROUPS][state]
        expected = ErrorCode.NONE if answer is Action.ACCEPT else answer
        assert history.ask(DeleteGroup("group")).error_code == expected
        assert ("group" in history.groups()) == (answer is not Action.ACCEPT)


def in_state(history: History, state: State) -> Client:
    """The second member of a group in this state; in Empty it has left."""
    leader, follower = history.stable(2)
    if state is State.PREPARING_REBALANCE:
        history.client().enter()
    elif state is State.COMPLETING_REBALANCE:
        leader.join()
        follower.join()
    elif state is State.EMPTY:
        leader.leave()
        follower.leave()
    elif state is State.DEAD:
        history.group().transition_to(State.DEAD, history.now_ms)
    assert history.group().state is state
    return follower
