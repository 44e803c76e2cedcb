"""The assignors of classic groups share all partitions, evenly, and move as few as they may."""

from __future__ import annotations

from random import Random

import pytest

from kshim.plan.assignors import SHARES, cooperative_shares, range_shares, roundrobin_shares


def test_range_shares_blocks() -> None:
    shares = range_shares({"b": (), "a": ()}, 5)
    assert {member: list(those) for member, those in shares.items()} == {"a": [0, 1, 2], "b": [3, 4]}


def test_roundrobin_shares_in_turns() -> None:
    shares = roundrobin_shares({"b": (), "a": ()}, 5)
    assert {member: list(those) for member, those in shares.items()} == {"a": [0, 2, 4], "b": [1, 3]}


def test_what_moves_is_given_to_nobody_at_first() -> None:
    first = cooperative_shares({"a": (0, 1, 2, 3), "b": ()}, 4)
    assert first == {"a": [0, 1], "b": []}
    assert cooperative_shares(first, 4) == {"a": [0, 1], "b": [2, 3]}


def test_a_share_of_a_member_that_is_gone_is_given_at_once() -> None:
    assert cooperative_shares({"a": (0, 1), "b": (2, 3)}, 6) == {"a": [0, 1, 4], "b": [2, 3, 5]}


@pytest.mark.parametrize("name", SHARES)
def test_all_partitions_are_shared_evenly(name: str) -> None:
    chance = Random(1)
    for _ in range(200):
        members = [f"m{n}" for n in range(chance.randint(1, 7))]
        partitions = chance.randint(1, 20)
        owned: dict[str, list[int]] = {member: [] for member in members}
        for partition in range(partitions):
            owned[chance.choice(members)].append(partition)
        shares = SHARES[name](SHARES[name](owned, partitions), partitions)
        sizes = [len(those) for those in shares.values()]
        assert sorted(each for those in shares.values() for each in those) == list(range(partitions))
        assert max(sizes) - min(sizes) <= 1
        if name == "cooperative-sticky":
            for member, those in owned.items():
                few = partitions // len(members)
                assert len(set(those) & set(shares[member])) >= min(len(those), few)
