"""Texts that are cut before they are joined."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from kshim.coordination.groups.rebalance_record import Rebalance, RebalanceBegan, Who
from kshim.coordination.groups.texts import joined
from kshim.coordination.groups.trigger import Trigger


@given(st.lists(st.text(max_size=5)), st.sampled_from(["", ", ", "; "]), st.integers(0, 30))
def test_it_is_the_beginning_of_all(parts: list[str], separator: str, most: int) -> None:
    assert joined(parts, separator, most) == separator.join(parts)[:most]


def test_later_parts_are_not_asked_for() -> None:
    def parts() -> Iterator[str]:
        yield "a" * 1_000
        raise AssertionError("asked for")

    assert joined(parts()) == "a" * 1_000


def test_reports_about_many_members_are_short() -> None:
    members = tuple(Who("m" * 30_000) for _ in range(1_000))
    rebalance = Rebalance("g", Trigger.MEMBER_LEFT, members, "", "", 0)
    assert len(str(RebalanceBegan("g", Trigger.MEMBER_LEFT, members))) < 1_100
    assert len(str(rebalance)) < 1_200
