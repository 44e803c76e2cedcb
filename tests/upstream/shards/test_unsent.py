"""Offsets that the upstream does not have yet: which are sent first, and which are forgotten."""

from __future__ import annotations

from kshim.upstream.shards.unsent import Unsent, UnsentOffsets


def test_shards_take_turns() -> None:
    unsent = UnsentOffsets()
    unsent.note(1, [(b"\0\1a", b"1"), (b"\0\1b", b"1"), (b"\0\2c", b"a group")], 0)
    unsent.note(2, [(b"\0\1d", b"1")], 0)
    assert len(unsent) == 3
    assert [each.key[2:] for each in unsent.first(2)] == [b"a", b"b"]
    assert [each.key[2:] for each in unsent.first(2)] == [b"d", b"a"]


def test_what_is_put_off_comes_last() -> None:
    unsent = UnsentOffsets()
    unsent.note(1, [(b"\0\1a", b"1"), (b"\0\1b", b"1")], 0)
    unsent.put_off(unsent.first(1)[0])
    assert [each.key[2:] for each in unsent.first(2)] == [b"b", b"a"]


def test_what_is_newer_stays() -> None:
    unsent = UnsentOffsets()
    unsent.note(1, [(b"\0\1a", b"old")], 0)
    (old,) = unsent.first(1)
    unsent.note(1, [(b"\0\1a", b"new")], 0)
    unsent.remove(old)
    unsent.put_off(old)
    unsent.note_older(old, 0)
    assert unsent.first(9) == [Unsent(1, b"\0\1a", b"new")]


def test_a_shard_that_is_lost_has_none() -> None:
    unsent = UnsentOffsets()
    unsent.note(1, [(b"\0\1a", b"1")], 0)
    (one,) = unsent.first(1)
    unsent.lose(1)
    assert (len(unsent), unsent.has(one)) == (0, False)
    unsent.note(1, [(b"\0\1a", b"2"), (b"\0\1a", None)], 0)
    assert unsent.first(1) == []


def test_the_oldest_offset_that_the_upstream_lacks() -> None:
    """A key whose offsets are committed faster than they are sent is as old as the one that was not sent."""
    unsent = UnsentOffsets()
    assert unsent.oldest_s() is None
    unsent.note(1, [(b"\0\1a", b"1")], 10)
    unsent.note(1, [(b"\0\1a", b"2")], 11)
    (second,) = unsent.first(1)
    unsent.note(1, [(b"\0\1a", b"3")], 12)
    assert unsent.oldest_s() == 10
    unsent.remove(second)
    assert unsent.oldest_s() == 12
    unsent.remove(unsent.first(1)[0])
    assert unsent.oldest_s() is None
