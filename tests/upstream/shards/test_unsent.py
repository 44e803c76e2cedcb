"""Offsets that the upstream does not have yet: which are sent first, and which are forgotten."""

from __future__ import annotations

from kshim.upstream.shards.unsent import Unsent, UnsentOffsets


def test_shards_take_turns() -> None:
    unsent = UnsentOffsets()
    unsent.note(1, [(b"\0\1a", b"1"), (b"\0\1b", b"1"), (b"\0\2c", b"a group")])
    unsent.note(2, [(b"\0\1d", b"1")])
    assert len(unsent) == 3
    assert [each.key[2:] for each in unsent.first(2)] == [b"a", b"b"]
    assert [each.key[2:] for each in unsent.first(2)] == [b"d", b"a"]


def test_what_is_put_off_comes_last() -> None:
    unsent = UnsentOffsets()
    unsent.note(1, [(b"\0\1a", b"1"), (b"\0\1b", b"1")])
    unsent.put_off(unsent.first(1)[0])
    assert [each.key[2:] for each in unsent.first(2)] == [b"b", b"a"]


def test_what_is_newer_stays() -> None:
    unsent = UnsentOffsets()
    unsent.note(1, [(b"\0\1a", b"old")])
    (old,) = unsent.first(1)
    unsent.note(1, [(b"\0\1a", b"new")])
    unsent.remove(old)
    unsent.put_off(old)
    unsent.note_older(old)
    assert unsent.first(9) == [Unsent(1, b"\0\1a", b"new")]


def test_a_shard_that_is_lost_has_none() -> None:
    unsent = UnsentOffsets()
    unsent.note(1, [(b"\0\1a", b"1")])
    (one,) = unsent.first(1)
    unsent.lose(1)
    assert (len(unsent), unsent.has(one)) == (0, False)
    unsent.note(1, [(b"\0\1a", b"2"), (b"\0\1a", None)])
    assert unsent.first(1) == []
