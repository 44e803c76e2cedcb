"""Server-sent events: what a reader gets, how soon, and what a slow reader costs."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from kshim.http.channel import IDLE_S, READ_S
from kshim.http.events import ALIVE_S, MOST_READERS
from kshim.http.watch import GroupWatch
from tests.http.harness import Browser, Kshim, Told, billing, commit, create_topic, produce

SOON_S = 1.0
"""After so long the page shows what has happened."""


@pytest.fixture
def kshim() -> Kshim:
    return Kshim()


def read(kshim: Kshim, target: str = "/events", **headers: str) -> Browser:
    browser = kshim.browser()
    browser.send("GET", target, {name.replace("_", "-"): value for name, value in headers.items()})
    return browser


def lags(browser: Browser) -> dict[str, Any]:
    return {
        row["group_id"]: row["lag"] for kind, _, rows in browser.events() if kind == "groups" for row in rows
    }


def test_a_reader_is_told_of_all_groups_and_then_of_changes(kshim: Kshim) -> None:
    client = billing(kshim)
    commit(kshim.client(), "other", "orders", 0)
    browser = read(kshim)
    assert lags(browser) == {"billing": 1, "other": 3}
    kshim.reactor.pump([SOON_S / 4] * 8)
    assert browser.events() == []
    produce(client, "orders", 2)
    kshim.reactor.pump([SOON_S / 4] * 4)
    assert lags(browser) == {"billing": 3, "other": 5}
    commit(kshim.client(), "other", "orders", 5)
    kshim.reactor.pump([SOON_S / 4] * 4)
    assert lags(browser) == {"other": 0}


def test_a_group_that_is_gone_is_told(kshim: Kshim, monkeypatch: pytest.MonkeyPatch) -> None:
    create_topic(kshim.client(), "orders")
    commit(kshim.client(), "g", "orders", 0)
    browser = read(kshim)
    assert lags(browser) == {"g": 0}
    monkeypatch.setattr(kshim.facts.groups, "group_ids", list)
    kshim.reactor.pump([SOON_S / 4] * 4)
    ((_, _, (row,)),) = browser.events()
    assert (row["group_id"], row["state"]) == ("g", "Dead")


def test_one_group_alone(kshim: Kshim) -> None:
    billing(kshim)
    commit(kshim.client(), "other", "orders", 0)
    browser = read(kshim, "/events?group=other")
    kshim.facts.recorder.add(Told("billing"))
    kshim.facts.recorder.add(Told("other"))
    kshim.reactor.advance(0)
    rows, told = browser.events()
    assert rows == ("groups", "", [kshim.get("/groups").json["groups"][1]])
    assert (told[0], told[2]["group"], told[2]["event"]) == ("recorded", "other", "test")


def test_events_have_numbers_and_none_is_missed(kshim: Kshim) -> None:
    kshim.facts.recorder.add(Told())
    browser = read(kshim)
    kshim.facts.recorder.add(Told())
    kshim.facts.recorder.add(Told())
    kshim.reactor.advance(0)
    assert [(number, data["number"]) for _, number, data in browser.events()] == [("2", 2), ("3", 3)]
    browser.close()
    kshim.facts.recorder.add(Told())
    for again in (read(kshim, Last_Event_ID="2"), read(kshim, "/events?after=2")):
        assert [number for _, number, _ in again.events()] == ["3", "4"]
    assert read(kshim, "/events?after=99").events() == []


def test_a_reader_that_is_slow_costs_nothing_and_catches_up(kshim: Kshim) -> None:
    client = billing(kshim)
    browser = read(kshim)
    browser.events()
    seen = kshim.facts.recorder.last_number
    browser.channel.pauseProducing()
    produce(client, "orders", 1)
    kshim.facts.recorder.add(Told())
    kshim.reactor.advance(0)
    for _ in range(2, 100):
        produce(client, "orders", 1)
        kshim.facts.recorder.add(Told())
        kshim.reactor.pump([0.25])
    assert len(browser.transport.value()) < 500  # the one that was made when it began to be slow
    browser.channel.resumeProducing()
    kshim.reactor.advance(0)
    events = browser.events()
    numbers = [int(number) for kind, number, _ in events if kind == "recorded"]
    assert numbers == list(range(seen + 1, kshim.facts.recorder.last_number + 1))
    assert len(numbers) >= 99
    rows = [rows for kind, _, rows in events if kind == "groups"]
    assert len(rows) <= 2
    assert rows[-1][0]["lag"] == 100


def test_a_reader_that_does_not_read_is_disconnected(kshim: Kshim) -> None:
    browser = read(kshim)
    browser.channel.pauseProducing()
    kshim.facts.recorder.add(Told())
    kshim.reactor.advance(0)
    kshim.reactor.advance(READ_S - 1)
    assert not browser.transport.aborted
    kshim.reactor.advance(2)
    assert browser.transport.aborted


def test_a_quiet_connection_lives(kshim: Kshim) -> None:
    browser = read(kshim)
    for _ in range(10):
        kshim.reactor.advance(ALIVE_S)
    assert browser.transport.value().count(b": alive") == 10
    assert 10 * ALIVE_S > IDLE_S
    assert not browser.transport.aborted


def test_readers_are_counted(kshim: Kshim) -> None:
    readers = [read(kshim) for _ in range(MOST_READERS)]
    refused = kshim.get("/events")
    assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
    readers.pop().close()
    readers.append(read(kshim))
    for reader in readers:
        reader.close()
    before = len(kshim.reactor.getDelayedCalls())
    kshim.facts.recorder.add(Told())
    assert len(kshim.reactor.getDelayedCalls()) == before


def test_nothing_goes_on_when_nobody_reads(kshim: Kshim) -> None:
    before = len(kshim.reactor.getDelayedCalls())
    browser = read(kshim)
    assert len(kshim.reactor.getDelayedCalls()) > before
    browser.close()
    assert len(kshim.reactor.getDelayedCalls()) == before


def test_a_look_that_fails_is_logged_and_the_next_one_succeeds(
    kshim: Kshim, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(kshim.client(), "orders")
    commit(kshim.client(), "g", "orders", 0)
    with monkeypatch.context() as broken:
        broken.setattr(kshim.facts.groups, "see", lambda _: 1 / 0)
        browser = read(kshim)
        assert browser.events() == []
    assert "cannot look at the groups" in caplog.text
    kshim.reactor.pump([SOON_S / 4] * 4)
    assert lags(browser) == {"g": 0}


def test_many_groups_come_in_several_events(kshim: Kshim, monkeypatch: pytest.MonkeyPatch) -> None:
    create_topic(kshim.client(), "orders")
    client = kshim.client()
    for number in range(5):
        commit(client, f"g{number}", "orders", 0)
    monkeypatch.setattr("kshim.http.events.MOST_ROWS", 2)
    browser = read(kshim)
    told = [[row["group_id"] for row in rows] for _, _, rows in browser.events()]
    assert list(map(len, told)) == [2, 2, 1]
    assert sorted(chain.from_iterable(told)) == [f"g{number}" for number in range(5)]
    commit(client, "g3", "orders", 0)
    produce(client, "orders", 1)
    kshim.reactor.pump([SOON_S / 4] * 4)
    assert set(lags(browser)) == {f"g{number}" for number in range(5)}


def test_no_rows_are_kept_while_nobody_reads(kshim: Kshim) -> None:
    create_topic(kshim.client(), "orders")
    commit(kshim.client(), "g", "orders", 0)
    watch = GroupWatch(kshim.facts)
    leave = watch.watch(lambda: None)
    kshim.reactor.advance(0)
    assert watch.row("g") is not None
    leave()
    assert watch.row("g") is None
    assert watch.after(0)[1] == []
