"""The pages as HTML: well-formed, escaped, and made in slices; the drawing of rebalances."""

from __future__ import annotations

import time
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.http.cut import MOST_MEMBERS, _cut
from kshim.http.html import VOID, Html, duration, joined, number, tag
from kshim.http.timeline import BAND, CALM, LEAD, MOST_LANES, MOST_REBALANCES, MOST_ROWS, timeline
from tests.http.harness import Kshim, billing, commit, create_topic, delays, join

NASTY = "<script>alert('x')</script> \"&' \u202e ü"


class Parsed(HTMLParser):
    """Elements must be closed in their order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, name: str, **attributes: str) -> list[dict[str, str | None]]:
        wanted = {key.strip("_"): value for key, value in attributes.items()}
        return [found for each, found in self.seen if each == name and wanted.items() <= found.items()]


@given(st.text(), st.text())
def test_text_is_text(text: str, more: str) -> None:
    made = tag("p", text, title=more, hidden=False, lang=None)
    assert (made.count("<"), made.count('"')) == (2, 2)
    assert joined([Html("<b>"), "<b>", None]) == "<b>&lt;b&gt;"


@pytest.mark.parametrize(
    "path", ["/", "/page/groups/{}", "/page/topics", "/page/topics/orders", "/page/connections"]
)
def test_pages_are_well_formed_whatever_clients_say(path: str) -> None:
    kshim = Kshim()
    billing(kshim)
    commit(kshim.client(), NASTY, "orders", 0)
    group = "%3Cscript%3Ealert('x')%3C%2Fscript%3E%20%22%26'%20%E2%80%AE%20%C3%BC"
    for name in (group, "billing"):
        reply = kshim.get(path.format(name))
        assert (reply.status, reply.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        page = Parsed(reply.body.decode())
        assert [script["src"] for script in page.of("script")] == ["/page/page.js"]
        attributes = {key for _, found in page.seen for key in found}
        assert not [key for key in attributes if key.startswith("on") or key == "style"]
        assert page.of("a", href="/page/topics")


@pytest.mark.parametrize("path", ["/page/groups/nope", "/page/topics/nope", "/page/nope"])
def test_a_stale_link_is_a_page(path: str) -> None:
    reply = Kshim().get(path)
    assert (reply.status, reply.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    page = Parsed(reply.body.decode())
    assert "Not found" in page.text
    assert "nope" in page.text
    assert page.of("a", href="/page/topics")


def test_internal_topics_are_folded_away() -> None:
    kshim = Kshim()
    billing(kshim)
    body = kshim.get("/page/topics").body.decode()
    before, _, folded = body.partition("<details>")
    assert "/page/topics/orders" in before
    assert "__consumer_offsets" not in before
    assert "1 internal topic" in folded
    assert "/page/topics/__consumer_offsets" in folded


def test_the_page_of_a_topic() -> None:
    kshim = Kshim()
    billing(kshim)
    page = Parsed(kshim.get("/page/topics/orders").body.decode())
    assert page.of("a", href="/page/groups/billing")
    assert len(page.of("code")) == 3
    for name in ("retention.ms", "cleanup.policy", "1970-01-01 00:00:01.000Z"):
        assert name in page.text
    nothing = Parsed(kshim.get("/page/topics/orders?offset=3").body.decode())
    assert "Nothing found: partition 0 has the offsets 0 to 3." in nothing.text
    later = Parsed(kshim.get("/page/topics/orders?time=1970-01-01T00:00:00Z&as=hex").body.decode())
    assert later.text.count("78") == 3
    wrong = kshim.get("/page/topics/orders?time=soon")
    assert (wrong.status, "expected ms since 1970" in wrong.body.decode()) == (400, True)


def test_a_group_that_has_committed_nothing_consumes_a_topic_too() -> None:
    kshim = Kshim()
    create_topic(kshim.client(), "orders", 2)
    join(kshim.client(), kshim.reactor, "new", {"orders": [1]})
    page = Parsed(kshim.get("/page/topics/orders").body.decode())
    assert page.of("a", href="/page/groups/new")
    assert "No group consumes it." not in page.text


def test_offsets_are_reset_on_the_page_only_if_commands_are_taken() -> None:
    for is_taken in (True, False):
        kshim = Kshim(http_steering_enable=is_taken)
        billing(kshim)
        page = Parsed(kshim.get("/page/groups/billing").body.decode())
        assert bool(page.of("form", id="reset")) is is_taken


def test_a_group_that_is_gone_keeps_its_story(monkeypatch: pytest.MonkeyPatch) -> None:
    kshim = Kshim()
    billing(kshim)
    monkeypatch.setattr(kshim.facts.groups, "see", lambda _: None)
    page = Parsed(kshim.get("/page/groups/billing").body.decode())
    assert "Dead" in page.text
    assert "rebalanced because a member joined" in page.text


def test_a_large_page_is_made_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    kshim = Kshim()
    create_topic(kshim.client(), "large", 2000)
    turns = delays(kshim.reactor, monkeypatch)
    page = Parsed(kshim.get("/page/topics/large").body.decode())
    assert [found["data-label"] for found in page.of("th", scope="row")].count("Partition") == 2000
    assert turns.count(0) >= 10


def test_numbers_and_durations_for_people() -> None:
    told = [number(each).replace("\u202f", "'") for each in (0, 999, 1000, 1234567, None)]
    assert told == ["0", "999", "1'000", "1'234'567", "–"]
    shown = [duration(ms) for ms in (0, 41, 9_999, 12_345, 60_000, 3_600_000, 7_500_000, 4 * 86_400_000)]
    assert shown == ["0.000 s", "0.041 s", "9.999 s", "12.3 s", "1 min", "1 h 0 min", "2 h 5 min", "4 d"]


# ---- the drawing


def member(name: str, before: Any, after: Any, **facts: Any) -> dict[str, Any]:
    times = {"notified_ms": None, "joined_ms": 1000, "assigned_ms": 1100, "gone": None, "gone_ms": None}
    who = {"member_id": f"{name}-id", "client_id": name, "host": "10.0.0.1", "instance_id": None}
    return {**who, **times, "paused_ms": None, "before": before, "after": after, **facts}


def rebalance(*members: dict[str, Any], began_ms: int = 1000, generation: int = 1) -> dict[str, Any]:
    return {
        "generation": generation,
        "cause": "a member joined",
        "began_ms": began_ms,
        "ended_ms": began_ms + 100,
        "members": list(members),
    }


def bars(drawing: Html | None) -> list[tuple[str, float, float]]:
    """Each bar's text, begin and end."""
    assert drawing is not None
    Parsed(drawing)
    found = []
    for part in str(drawing).split("<rect ")[1:]:
        if "<title>" in part.partition("</rect>")[0]:
            x = float(part.split('x="')[1].split('"')[0])
            width = float(part.split('width="')[1].split('"')[0])
            title = part.split("<title>")[1].split("</title>")[0]
            found.append((title, x, x + width))
    return found


def test_partitions_are_held_until_a_member_joins_and_again_from_its_assignment() -> None:
    moved = rebalance(
        member("a", {"t": [0, 1]}, {"t": [0]}, joined_ms=1050),
        member("b", {}, {"t": [1]}, joined_ms=1000),
    )
    start, end = LEAD, LEAD + BAND
    assert sorted(bars(timeline("g", [moved], 2000))) == [
        ("a has t-0", 0, start + BAND / 2),
        ("a has t-0", end, end + CALM),
        ("a has t-1", 0, start + BAND / 2),
        ("a waits 0.050 s", start + BAND / 2, end),
        ("b has t-1", end, end + CALM),
        ("b waits 0.100 s", start, end),
    ]


def test_what_a_cooperative_member_keeps_is_not_interrupted() -> None:
    kept = rebalance(member("a", {"t": [0, 1]}, {"t": [0]}, assigned_ms=1050, paused_ms=0))
    start, end = LEAD, LEAD + BAND
    held = [bar for bar in sorted(bars(timeline("g", [kept], 2000))) if "has" in bar[0]]
    assert held == [("a has t-0", 0, end), ("a has t-0", end, end + CALM), ("a has t-1", 0, start + BAND / 2)]


def test_a_member_that_is_gone_has_nothing_afterwards() -> None:
    gone = rebalance(member("a", {"t": [0]}, {}, joined_ms=None, assigned_ms=None, gone="left", gone_ms=1020))
    drawing = timeline("g", [gone], 2000)
    assert bars(drawing) == [("a has t-0", 0, LEAD + BAND / 5)]
    assert "<title>a: left</title>" in str(drawing)


def test_many_partitions_are_one_bar() -> None:
    many = rebalance(member("a", {}, {"t": list(range(MOST_LANES + 1))}))
    assert ("a has 9 partitions", LEAD + BAND, LEAD + BAND + CALM) in bars(timeline("g", [many], 2000))


def test_bytes_that_only_clients_can_read() -> None:
    assert ("a has assigned", LEAD + BAND, LEAD + BAND + CALM) in bars(
        timeline("g", [rebalance(member("a", "", "00ff"))], 2000)
    )


def test_only_so_much_is_drawn() -> None:
    crowd = [member(f"m{number}", {}, {}) for number in range(MOST_ROWS + 5)]
    many = [rebalance(*crowd, began_ms=1000 * number) for number in range(MOST_REBALANCES + 5)]
    drawing = str(timeline("g", many, 10**6))
    assert drawing.count('class="band"') == MOST_REBALANCES
    assert drawing.count('class="name"') == MOST_ROWS
    assert "5 more members are not drawn." in drawing
    assert timeline("g", [], 0) is None


def test_a_rebalance_of_no_time_is_drawn() -> None:
    at_once = rebalance(member("a", {}, {"t": [0]}, joined_ms=1000, assigned_ms=1000))
    at_once["ended_ms"] = 1000
    assert ("a has t-0", LEAD, LEAD + BAND + CALM) in bars(timeline("g", [at_once], 1000))


def test_the_page_of_a_large_group_is_cut_and_says_so() -> None:
    kshim = Kshim()
    member_id = join(kshim.client(), kshim.reactor, "large", {"orders": range(30_000)})
    group = kshim.facts.groups.see("large")
    assert group is not None
    began_s = time.process_time()
    page = kshim.get("/page/groups/large").body.decode()
    assert time.process_time() - began_s < 5
    assert len(page) < 20_000
    assert "orders-11 and 29\u202f988 more" in Parsed(page).text
    assert "has more than 200 partitions" in Parsed(page).text
    told = kshim.get("/groups/large").json["members"]
    assert [(each["member_id"], len(each["assignment"]["orders"])) for each in told] == [(member_id, 30_000)]


def test_the_members_of_a_large_rebalance_are_cut() -> None:
    parts = [{**member(f"m{number}", {}, {"t": [number]}), "name": f"m{number}"} for number in range(300)]
    kept = _cut({**rebalance(*parts), "moved": [1], "members_at_cause": [], "story": ["s"] * 60})
    assert (len(kept["members"]), kept["more_members"]) == (MOST_MEMBERS, 300 - MOST_MEMBERS)
    assert kept["story"][-1] == "And 10 more sentences."
    assert f"{300 - MOST_ROWS} more members are not drawn." in str(timeline("g", [kept], 2000))
