"""The drawing of a plan: what its columns show, and that it is a well-formed document."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from kshim.plan.deployment import Crash, Deployment, RollingRestart, deployed
from kshim.plan.drawing import Column, columns, drawn
from kshim.plan.ledger import Span
from kshim.plan.run import predicted
from kshim.plan.setting import Setting

SVG = "{http://www.w3.org/2000/svg}"


def test_a_column_has_the_highest_and_the_mean_share() -> None:
    spans = [Span(10, 15), Span(12, 15), Span(20, 40)]
    assert columns(spans, 50, 4, count=5) == [
        Column(0, 0),
        Column(0.5, 8 / 40),
        Column(0.25, 0.25),
        Column(0.25, 0.25),
        Column(0, 0),
    ]


def test_a_short_pause_is_seen_in_a_long_time() -> None:
    assert [each.highest for each in columns([Span(500, 501)], 3_600_000, 1, count=10)] == [1] + [0] * 9


def test_a_pause_up_to_the_end_fills_the_last_column() -> None:
    assert columns([Span(40, 50)], 50, 1, count=5)[-1] == Column(1, 1)


@pytest.mark.parametrize("duration_ms", [500, 90_000, 3_600_000, 86_400_000 * 3])
def test_the_document_has_a_panel_for_each_setting(duration_ms: int) -> None:
    deployment = deployed(2, [RollingRestart(0, 100, 50), Crash(300, 1)])
    settings = [Setting("eager <1>"), Setting("static & so", is_static=True)]
    outcomes = [predicted(each, [deployment], min(duration_ms, 60_000), 4) for each in settings]
    root = ElementTree.fromstring(drawn(outcomes, deployment, duration_ms, 4))
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert {"eager <1>", "static & so", "100%"} <= set(texts)
    assert len(list(root.iter(f"{SVG}title"))) == len(deployment.acts)
    assert texts.count("0") == 3


def test_a_calm_group_is_drawn_too() -> None:
    outcome = predicted(Setting("calm"), [Deployment(2, ())], 1_000, 4)
    assert "1%" in drawn([outcome], Deployment(2, ()), 1_000, 4)
