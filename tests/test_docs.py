"""The generated pages, and those that quote the code, match it."""

from __future__ import annotations

import re
from pathlib import Path

from docs import (
    draw_connection,
    draw_metrics,
    draw_performance,
    draw_rooms,
    draw_torture,
    draw_transactions,
    draw_upstream,
)
from docs.draw_coordinator import PAGE, drawn
from kshim.callers.mistake import Mistake


def test_the_coordinator_s_page_is_current() -> None:
    page = PAGE.read_text()
    assert page == drawn(page), "run `python docs/draw_coordinator.py`"


def test_the_page_of_transactions_is_current() -> None:
    page = draw_transactions.PAGE.read_text()
    assert page == draw_transactions.drawn(page), "run `python -m docs.draw_transactions`"


def test_the_states_of_a_connection_are_current() -> None:
    page = draw_connection.PAGE.read_text()
    assert page == draw_connection.drawn(page), "run `python -m docs.draw_connection`"


def test_the_rooms_are_current() -> None:
    page = draw_rooms.PAGE.read_text()
    assert page == draw_rooms.drawn(page), "run `python -m docs.draw_rooms`"


def test_the_tables_of_an_upstream_are_current() -> None:
    page = draw_upstream.PAGE.read_text()
    assert page == draw_upstream.drawn(page), "run `python -m docs.draw_upstream`"


def test_the_tables_of_torture_are_current() -> None:
    page = draw_torture.PAGE.read_text()
    assert page == draw_torture.drawn(page), "run `python -m docs.draw_torture`"


def test_the_measured_figures_are_current() -> None:
    page = draw_performance.PAGE.read_text()
    assert page == draw_performance.drawn(page), "run `python -m docs.draw_performance`"
    assert "offset-commit 8 x 16" in draw_performance.measured()


def test_the_table_of_metrics_is_current() -> None:
    page = draw_metrics.PAGE.read_text()
    assert page == draw_metrics.drawn(page), "run `python -m docs.draw_metrics`"


def test_the_pages_to_change_with_the_first_release_are_listed() -> None:
    top = Path(__file__).parents[1]
    pages = [top / "README.md", *(top / "docs").rglob("*.md")]
    saying = {page.name for page in pages if "not on PyPI yet" in page.read_text()}
    listed = set(
        re.findall(r"[\w-]+\.md", (top / "docs" / "releasing.md").read_text().split("6. The first")[1])
    )
    assert saying <= listed, "name them in step 6 of docs/releasing.md"


def test_each_mistake_stands_in_the_page_as_it_is_logged() -> None:
    page = (Path(__file__).parents[1] / "docs" / "troubleshooting.md").read_text()
    logged = {re.sub(r"\{[^}]*\}", "…", mistake.value) for mistake in Mistake}
    assert set(re.findall(r"^\| `(.*?)` \|", page, re.MULTILINE)) == logged
