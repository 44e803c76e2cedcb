"""The remarks about groups are made anew after a rebalance, and while one is recent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.coordination.groups.trigger import Trigger
from kshim.http import remarks
from kshim.recorder.scores import WINDOW_MS
from tests.http.harness import Kshim, billing


def took(ended_ms: int, took_ms: int) -> Rebalance:
    began_ms = ended_ms - took_ms
    return Rebalance("billing", Trigger.MEMBER_LEFT, (), "", "", began_ms, ended_ms=ended_ms)


def test_a_row_has_the_last_rebalance_and_remarks(monkeypatch: pytest.MonkeyPatch) -> None:
    kshim = Kshim()
    billing(kshim)
    made = []
    scores_of = remarks.scores_of

    async def counted(*arguments: object) -> object:
        made.append(arguments)
        return await scores_of(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(remarks, "scores_of", counted)

    def row() -> dict[str, object]:
        (found,) = kshim.get("/groups").json["groups"]
        return dict(found)

    assert row()["remarks"] == []
    now_ms = int(kshim.facts.wall_clock.seconds() * 1000)
    kshim.facts.recorder.add(took(now_ms, WINDOW_MS // 2))
    assert row()["last"] == {"cause": "a member left", "ended_ms": now_ms}
    assert row()["remarks"] == ["flaps: it rebalanced 50% of the last 10 min"]
    assert len(made) == 2
    kshim.reactor.advance(remarks.AGAIN_MS / 1000)
    row()
    assert len(made) == 3
    kshim.reactor.advance(WINDOW_MS / 1000)
    assert row()["remarks"] == []
    kshim.reactor.advance(WINDOW_MS / 1000)
    row()
    assert len(made) == 4


def test_the_remarks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remarks, "MOST_KEPT", 1)
    kshim = Kshim()
    billing(kshim)
    now_ms = int(kshim.facts.wall_clock.seconds() * 1000)
    kshim.facts.recorder.add(took(now_ms, 1))
    for _ in range(3):
        kshim.facts.recorder.add(replace(took(now_ms, 1), group_id="billing"))
        kshim.get("/groups")
    assert len(kshim.facts.remarks._kept) == 1
