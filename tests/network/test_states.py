"""The table of a connection's states, and that a connection reads as the table says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.network.states import NEXT, Event, State
from tests.network.one_connection import Server

OF_THE_TRANSPORT = (Event.STALLS, Event.READS, Event.DRAINS)


def test_every_state_is_in_the_table() -> None:
    assert list(NEXT) == list(State)


@pytest.mark.parametrize("state", [state for state in State if state is not State.LOST])
def test_a_client_may_go_in_any_state(state: State) -> None:
    assert NEXT[state][Event.IS_LOST] is State.LOST


@pytest.mark.parametrize("state", [State.DRAINING, State.CLOSING, State.LOST])
def test_nothing_is_read_again_once_the_end_has_begun(state: State) -> None:
    assert not {State.READING, State.FULL, State.STALLED} & set(NEXT[state].values())


@given(st.lists(st.one_of(st.sampled_from(OF_THE_TRANSPORT), st.integers(0, 9)), max_size=30))
def test_the_transport_reads_while_requests_are_read(happens: list[Event | int]) -> None:
    """An event, or a request that is sent, and answered if it was sent before."""
    server = Server()
    what = {
        Event.STALLS: server.connection.pauseProducing,
        Event.READS: server.connection.resumeProducing,
        Event.DRAINS: server.connection.drain,
    }
    state = State.READING
    for each in happens:
        if isinstance(each, Event):
            what[each]()
            state = NEXT[state].get(each, state)
            state = State.READING if state is State.FULL else state  # so little is in flight
        elif (request := b"%d" % each) in server.parked:
            server.parked.pop(request).answer_alone(request)
        elif server.transport.reads:
            server.send(request)
            assert request in server.parked
        assert server.transport.reads == (state is State.READING)
