"""The members' protocols and metadata, kept in few bytes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.coordination.groups.offered import (
    MOST_NAMES,
    Offered,
    Protocols,
    joined_names,
    split_names,
)
from schemas.error_code import ErrorCode
from schemas.messages.join_group import JoinGroupRequestProtocol
from tests.coordination.groups.history import History, protocols

NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=4)
OFFERS = st.lists(
    st.builds(JoinGroupRequestProtocol, name=NAMES, metadata=st.binary(max_size=300)), max_size=30
)


@given(OFFERS)
def test_what_was_sent_is_found_again(offers: Sequence[JoinGroupRequestProtocol]) -> None:
    found = Protocols.of(offers)
    assert [name.decode() for name in split_names(found.names)] == [each.name for each in offers]
    first: dict[str, bytes] = {}
    for each in offers:
        first.setdefault(each.name, each.metadata)
    assert all(found.has(name) and found.metadata(name) == metadata for name, metadata in first.items())
    assert found.metadata(None) == found.metadata("none of these") == b""
    assert found == Protocols.of(tuple(offers))


@given(OFFERS, OFFERS)
def test_offers_are_equal_if_what_was_sent_is(
    one: Sequence[JoinGroupRequestProtocol], other: Sequence[JoinGroupRequestProtocol]
) -> None:
    assert (Protocols.of(one) == Protocols.of(other)) == (one == other)


@pytest.mark.parametrize(("names", "metadata"), [(90_000, b""), (30_000, b"some"), (5_000, bytes(1_000))])
def test_they_take_hardly_more_than_was_sent(names: int, metadata: bytes) -> None:
    sent = sum(2 + len(f"p{n}") + 4 + len(metadata) for n in range(names))
    tracemalloc.start()
    try:
        offers = Protocols.of(
            [
                JoinGroupRequestProtocol(name=f"p{n}", metadata=bytes(bytearray(metadata)))
                for n in range(names)
            ]
        )
        takes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert offers.has("p7")
    assert takes < 1.3 * sent


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.sampled_from("abcd"), max_size=4)), max_size=40))
def test_the_common_names_are_those_of_all(steps: list[tuple[int, list[str]]]) -> None:
    offered, members = Offered(), [Protocols.of(()) for _ in range(4)]
    for each in members:
        offered.add(each)
    for member, names in steps:
        now = Protocols.of(protocols(*names))
        offered.add(now)
        offered.remove(members[member])
        members[member] = now
        lists = [set(split_names(each.names)) for each in members]
        assert set(split_names(offered.common())) == set.intersection(*lists)
        for wanted in ("a", "bc", "abcd", ""):
            common = bool(set(split_names(joined_names(wanted))) & set.intersection(*lists))
            assert offered.is_common(joined_names(wanted)) == common
    for each in members:
        offered.remove(each)
    assert (len(offered), offered._count) == (0, 0)


def test_members_share_their_names() -> None:
    one, other, offered = Protocols.of(protocols("range")), Protocols.of(protocols("range")), Offered()
    offered.add(one)
    offered.add(other)
    assert one.names is other.names


def test_a_group_has_room_for_so_many_names(history: History) -> None:
    """Members that offer the same ones count once."""
    names = [f"p{n}" for n in range(MOST_NAMES // 2)]
    history.stable(3, protocols=protocols(*names))
    late = history.client(protocols=protocols("p0", *(f"q{n}" for n in range(MOST_NAMES // 2))))
    assert late.error(late.join()) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert len(history.group().members) == 3


def test_nobody_offers_more_than_that(history: History) -> None:
    client = history.client(protocols=protocols(*(f"p{n}" for n in range(MOST_NAMES + 1))))
    assert client.error(client.join()) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
