"""The generated pages match the code."""

from __future__ import annotations

from docs import draw_connection, draw_transactions
from docs.draw_coordinator import PAGE, drawn


def test_the_coordinator_s_page_is_current() -> None:
    page = PAGE.read_text()
    assert page == drawn(page), "run `python docs/draw_coordinator.py`"


def test_the_page_of_transactions_is_current() -> None:
    page = draw_transactions.PAGE.read_text()
    assert page == draw_transactions.drawn(page), "run `python -m docs.draw_transactions`"


def test_the_states_of_a_connection_are_current() -> None:
    page = draw_connection.PAGE.read_text()
    assert page == draw_connection.drawn(page), "run `python -m docs.draw_connection`"
