"""The division of shards among several kshim."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kshim.upstream.shards.division import divide

SHARDS = 10


def test_one_leads_all() -> None:
    assert divide(3, {"a": []}) == {"a": [0, 1, 2]}


def test_a_newcomer_gets_its_share_and_nothing_else_moves() -> None:
    assert divide(4, {"a": [0, 1, 2, 3], "b": []}) == {"a": [0, 1], "b": [2, 3]}


def test_what_nobody_leads_goes_to_those_that_have_least() -> None:
    assert divide(5, {"a": [0, 1, 2], "b": []}) == {"a": [0, 1, 2], "b": [3, 4]}


def test_of_two_that_say_they_lead_a_shard_one_does() -> None:
    assert divide(2, {"a": [0, 1], "b": [0, 1]}) == {"a": [0], "b": [1]}


@given(st.dictionaries(st.text(max_size=3), st.sets(st.integers(-2, SHARDS + 2)), min_size=1, max_size=13))
def test_each_shard_has_one_leader_all_have_their_share_and_few_move(owned: dict[str, set[int]]) -> None:
    divided = divide(SHARDS, owned)
    assert sorted(shard for shards in divided.values() for shard in shards) == list(range(SHARDS))
    sizes = [len(shards) for shards in divided.values()]
    assert max(sizes) - min(sizes) <= 1
    assert divide(SHARDS, divided) == divided, "nothing moves once it is even"
    alone = {
        member: {
            shard for shard in shards if not any(shard in owned[other] for other in owned if other != member)
        }
        for member, shards in owned.items()
    }
    for member, shards in divided.items():
        kept = len(set(shards) & owned[member])
        assert kept >= min(len(alone[member] & set(range(SHARDS))), min(sizes)), (member, owned, divided)


def test_a_shard_goes_to_a_member_that_it_answers() -> None:
    assert divide(4, {"a": [0, 1], "b": [2, 3]}, {"a": [0]}) == {"a": [1], "b": [0, 2, 3]}
    assert divide(4, {"a": [0, 1], "b": [2, 3]}, {"a": [0, 1, 2, 3]}) == {"a": [], "b": [0, 1, 2, 3]}


def test_a_shard_that_answers_nobody_stays() -> None:
    nobody = {"a": [0, 2], "b": [0, 2]}
    assert divide(4, {"a": [0, 1], "b": [2, 3]}, nobody) == {"a": [0, 1], "b": [2, 3]}


@given(st.lists(st.tuples(st.sets(st.integers(0, SHARDS)), st.sets(st.integers(0, SHARDS))), min_size=1))
def test_each_shard_has_one_leader_which_it_answers(members: list[tuple[set[int], set[int]]]) -> None:
    owned = {str(number): owned for number, (owned, _) in enumerate(members)}
    silent = {str(number): silent for number, (_, silent) in enumerate(members)}
    divided = divide(SHARDS, owned, silent)
    assert sorted(shard for shards in divided.values() for shard in shards) == list(range(SHARDS))
    for member, shards in divided.items():
        for shard in shards:
            assert shard not in silent[member] or all(shard in each for each in silent.values())
