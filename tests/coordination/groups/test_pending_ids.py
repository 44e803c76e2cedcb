"""Ids that were handed out and not used yet are bounded in bytes, over all groups."""

from __future__ import annotations

from kshim.coordination.groups.pending_ids import ENTRY_BYTES, PendingIds, timer_of
from schemas.error_code import ErrorCode
from tests.coordination.groups.history import History


def test_the_oldest_are_given_up_first() -> None:
    ids = PendingIds(most_bytes=3 * (ENTRY_BYTES + 100))
    timers = [timer_of(f"g{n}", "m") for n in range(4)]
    given_up = [list(ids.add(timer)) for timer in timers]
    assert given_up == [[], [], [], timers[:1]]
    ids.remove("g0", "m")
    ids.remove("g2", "m")
    assert len(ids) == 2
    ids.remove("g1", "m")
    ids.remove("g3", "m")
    assert ids.bytes == 0


def test_a_client_that_comes_back_is_let_in_meanwhile(history: History) -> None:
    """Another client's long ids push out each other, and not more than they have to."""
    history.coordinator._pending_ids._most_bytes = 500_000
    for _ in range(100):
        history.client("flooded", client_id="c" * 30_000).join()
        client = history.client("group")
        client.join()
        assert history.is_parked(client.join())
    ids = history.coordinator._pending_ids
    history.sleep(0)
    assert ids.bytes <= 500_000
    assert len(history.groups()["flooded"].pending_join) == len(ids) < 20


def test_an_id_that_was_given_up_is_unknown(history: History) -> None:
    history.coordinator._pending_ids._most_bytes = 40_000
    client = history.client("group")
    client.join()
    history.client("flooded", client_id="c" * 30_000).join()
    history.client("flooded", client_id="d" * 30_000).join()
    history.sleep(0)
    assert client.error(client.join()) == ErrorCode.UNKNOWN_MEMBER_ID
