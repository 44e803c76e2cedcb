"""The report's page is one valid file, and says what the report holds."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from kshim.spark.report.page import html
from kshim.spark.report.plots import HEIGHT, area, bars
from kshim.spark.report.values import (
    Asked,
    Behind,
    Flapping,
    Group,
    Mark,
    Rebalance,
    Report,
    Steps,
    Unrevoked,
)

VOID = {"meta", "br", "link", "img"}
T = 1_700_000_000_000
HOSTILE = '<script>alert("1")</script>&'


class Page(HTMLParser):
    """Checks that the elements are closed in order, and collects the text and the attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes += [(name, value or "") for name, value in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attributes]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def behind(group: str, **fields: object) -> Behind:
    known = Behind(group, "orders", 0, 40, 50, 10, 9.9, False, None)
    return known._replace(**fields)


def rebalance(**fields: object) -> Rebalance:
    known = Rebalance(
        *("billing", 3, T + 1000, 2, ("till-1@127.0.0.1",), (), "joined"),
        *(
            "a member joined",
            "till-1@127.0.0.1",
            "rebalance enforced",
            412,
            4,
            90,
            ("It began.", "It ended."),
        ),
    )
    return known._replace(**fields)


def report(**fields: object) -> Report:
    group = Group("billing", {0: 0, 1: 50, 2: 10}, {0: 4, 1: 2}, [Mark(1, "joined", 2), Mark(1, "lost", 1)])
    known = Report(
        bootstrap="127.0.0.1:9092",
        made_ms=T + 3000,
        steps=Steps(T, T + 3000, 3),
        asked=Asked(300, "10 minutes", 3),
        commits=6,
        rebalances=3,
        group_count=1,
        groups=(group,),
        behind=(behind("billing"),),
        unrevoked=(),
        flapping=(),
        latest=(rebalance(),),
        causes=(("a member joined", 3),),
    )
    return Report(**{**vars(known), **fields})


def test_it_says_what_the_report_holds() -> None:
    page = Page(html(report()))
    assert "No group is stuck, and none is flapping." in page.text
    assert "at most 50 records" in page.text
    assert "at most 4.00 a second" in page.text
    assert (
        "a member joined: till-1@127.0.0.1 (rebalance enforced); 4 partitions moved, up to 90 ms without"
        in page.text
    )
    assert "It began.It ended." in page.text
    assert "2023-11-14 22:13:21: lag 50, 2.00 commits/s, 3 rebalances" in page.text
    assert "2 × a member joined, 1 × a member was not heard of in time" in page.text


def test_what_needs_attention() -> None:
    page = Page(
        html(
            report(
                behind=(
                    behind("stands", stuck_seconds=720.0),
                    behind("stands", stuck_seconds=60.0, partition=7),
                    behind("ahead", lag=0, offset=60, beyond_end=True),
                ),
                unrevoked=(Unrevoked("waits", "till-3@10.0.0.3", 90.0, 300_000, ("orders-1", "orders-2")),),
                flapping=(
                    Flapping("flies", T, T + 600_000, 9, "till-2@10.0.0.2", "a member's session expired"),
                ),
            )
        )
    )
    assert (
        "stands is stuck in orders, partitions 0, 7, for up to 12.0 min, with 20 records to read."
        in page.text
    )
    assert (
        "waits waits for till-3@10.0.0.3 to give up orders-1, orders-2, for 1.5 min; "
        "the group removes it after 5.0 min." in page.text
    )
    assert "flies is flapping: 9 rebalances from" in page.text
    assert "till-2@10.0.0.2 came or went most often. Most often, a member's session expired." in page.text
    assert "ahead committed offset 60 of orders-0, which ends at 50" in page.text


def test_nothing_is_cut_without_a_word() -> None:
    stuck = tuple(behind("stands", stuck_seconds=720.0, partition=number) for number in range(101))
    windows = tuple(Flapping(f"flies{number}", T, T + 600_000, 9, None, None) for number in range(101))
    cut = Page(html(report(behind=stuck, flapping=windows)))
    assert "More than 100 partitions are stuck; these are the worst. kshim pipeline stuck --out" in cut.text
    assert "More than 100 windows have too many rebalances" in cut.text
    assert "More than 100 partitions have committed offsets" in cut.text
    assert "flies99" in cut.text
    assert "flies100" not in cut.text
    whole = Page(html(report(behind=stuck[:100], flapping=windows[:100])))
    assert "More than" not in whole.text


def test_without_causes_it_says_who_came_and_went() -> None:
    unknown = rebalance(
        cause=None, caused_by=None, reason=None, took_ms=None, moved=None, unowned_ms=None, story=()
    )
    page = Page(html(report(causes=(), latest=(unknown,))))
    assert "Causes" not in page.text
    assert "till-1@127.0.0.1" in page.text


def test_it_needs_nothing_else() -> None:
    """No script, no style sheet, no picture, nothing from another address."""
    page = Page(html(report()))
    assert not page.seen & {"script", "link", "img", "iframe", "object", "embed"}
    assert not [name for name, _ in page.attributes if name in {"href", "src", "onclick", "onload"}]
    assert "url(" not in html(report())
    assert "@import" not in html(report())


def hostile_reports() -> Iterator[Report]:
    yield report(bootstrap=HOSTILE)
    yield report(groups=(Group(HOSTILE, {0: 1}, {0: 1}, [Mark(0, HOSTILE, 1)._replace(kind="other")]),))
    yield report(behind=(behind(HOSTILE, topic=HOSTILE, stuck_seconds=1.0, beyond_end=True),))
    yield report(unrevoked=(Unrevoked(HOSTILE, HOSTILE, 1, 1, (HOSTILE,)),))
    yield report(flapping=(Flapping(HOSTILE, T, T, 1, HOSTILE, HOSTILE),), asked=Asked(1, HOSTILE, 1))
    yield report(
        latest=(rebalance(group=HOSTILE, cause=HOSTILE, caused_by=HOSTILE, reason=HOSTILE, story=(HOSTILE,)),)
    )
    yield report(latest=(rebalance(joined=(HOSTILE,), left=(HOSTILE,)),), causes=())
    yield report(causes=((HOSTILE, 1),))


@pytest.mark.parametrize("made", list(hostile_reports()))
def test_names_are_only_text(made: Report) -> None:
    written = html(made)
    assert "<script" not in written
    assert HOSTILE in Page(written).text


def test_nothing_there() -> None:
    empty = report(groups=(), behind=(), latest=(), causes=(), commits=0, rebalances=0, group_count=0)
    assert "No group was there." in Page(html(empty)).text


def test_a_step_without_lag_is_a_gap() -> None:
    assert area({0: 5, 1: 5, 3: 10}, 10, 4).count('class="line"') == 2
    assert 'd="M3 2V2H4"' in area({3: 10}, 10, 4)


def test_no_lag_at_all_is_at_the_bottom() -> None:
    assert f'd="M0 {HEIGHT}V{HEIGHT}H2"' in area({0: 0, 1: 0}, 0, 2)


def test_only_steps_with_commits_have_a_bar() -> None:
    assert bars({0: 4, 1: 0, 2: 2}, 4).count("M") == 2
