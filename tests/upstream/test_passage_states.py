"""The tables of a passage's states, and that both of its sides read as the tables say."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.upstream.passage_states import (
    ENDED,
    FLOWS,
    NEXT,
    RENEWABLE,
    SENDING,
    UNCONNECTED,
    Event,
    Flow,
    State,
)
from tests.network.frames import frame
from tests.upstream.relay_world import World

BOTH_SIDES = (Event.BROKER_STALLS, Event.BROKER_READS, Event.CLIENT_STALLS, Event.CLIENT_READS)


def test_every_state_is_in_its_table() -> None:
    assert list(NEXT) == list(State)
    assert list(FLOWS) == list(Flow)


@pytest.mark.parametrize(("table", "first"), [(NEXT, State.CONNECTING), (FLOWS, Flow.FLOWING)])
def test_every_state_can_be_reached(table: Mapping[Enum, Mapping[Event, Enum]], first: Enum) -> None:
    reached, left = {first}, [first]
    while left:
        found = set(table[left.pop()].values()) - reached
        reached |= found
        left += found
    assert reached == set(table)


def test_every_event_changes_a_state_in_one_table_only() -> None:
    of_requests = {event for following in NEXT.values() for event in following}
    of_responses = {event for following in FLOWS.values() for event in following}
    assert of_requests | of_responses == set(Event)
    assert not of_requests & of_responses


@pytest.mark.parametrize("state", [state for state in State if state is not State.OVER])
def test_the_broker_may_be_lost_in_any_state(state: State) -> None:
    assert NEXT[state][Event.LOSES_BROKER] is State.OVER


@pytest.mark.parametrize("state", State)
def test_a_client_that_leaves_ends_a_passage_for_good(state: State) -> None:
    following = set(NEXT[state].values())
    assert state in ENDED or NEXT[state][Event.CLIENT_LEAVES] in ENDED
    assert state not in ENDED or following <= set(ENDED)


@pytest.mark.parametrize("state", State)
def test_the_named_groups_of_states_agree_with_the_table(state: State) -> None:
    following = NEXT[state]
    assert (state in UNCONNECTED) == (Event.CONNECTS in following)
    assert (state in RENEWABLE) == (Event.LOGIN_BEGINS in following)
    assert not (state in UNCONNECTED and state in SENDING)


@given(st.lists(st.sampled_from(BOTH_SIDES), max_size=20))
def test_each_side_is_read_from_while_the_other_one_reads(happens: list[Event]) -> None:
    world = World()
    what = {
        Event.BROKER_STALLS: world.passage.pauseProducing,
        Event.BROKER_READS: world.passage.resumeProducing,
        Event.CLIENT_STALLS: world.near.pauseProducing,
        Event.CLIENT_READS: world.near.resumeProducing,
    }
    state, flow = State.OPEN, Flow.FLOWING
    for event in happens:
        what[event]()
        state = NEXT[state].get(event, state)
        flow = FLOWS[flow].get(event, flow)
        flow = Flow.FLOWING if flow is Flow.WAITING else flow  # no reply has to leave first
        assert world.broker.reads == (flow is Flow.FLOWING)
        assert world.client.reads == (state is State.OPEN and flow is Flow.FLOWING)
        if world.client.reads:
            world.ask(b"a")
            assert world.broker.taken() == frame(b"a")
            world.respond(b"A")
            assert world.client.taken() == frame(b"A")
