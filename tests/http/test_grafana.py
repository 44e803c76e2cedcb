"""The dashboard is current, and names no metric and no label that there is not."""

from __future__ import annotations

import json
import re

from docs import draw_grafana
from kshim.http.families import COUNTER, FAMILIES, HISTOGRAM

OF_PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total"}
LABEL = re.compile(r"by \(([^)]*)\)|\{(\w+)=|\{\{(\w+)\}\}")


def names() -> set[str]:
    found = set(OF_PROCESS)
    for name, family in FAMILIES.items():
        if family.kind == HISTOGRAM:
            found |= {f"{name}_{part}" for part in ("bucket", "sum", "count")}
        else:
            found.add(f"{name}_total" if family.kind == COUNTER else name)
    return found


def test_the_dashboard_is_current() -> None:
    assert draw_grafana.FILE.read_text() == draw_grafana.drawn(), "run `python -m docs.draw_grafana`"


def test_each_metric_of_it_is_served() -> None:
    dashboard = json.loads(draw_grafana.FILE.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    queries += [each["query"] for each in dashboard["templating"]["list"]]
    named = {name for query in queries for name in re.findall(r"\b(?:kafka|kshim|process)_\w+", query)}
    assert named <= names(), named - names()
    assert len(named) > 20


def test_each_label_of_it_is_one_of_its_metric() -> None:
    known = {label for family in FAMILIES.values() for label in family.labels} | {"le"}
    used = set()
    for panel in draw_grafana.dashboard()["panels"]:
        for target in panel.get("targets", ()):
            for found in LABEL.findall(target["expr"] + target["legendFormat"]):
                used |= {label.strip() for part in found for label in part.split(",") if label.strip()}
    assert used <= known, used - known
    assert used


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in draw_grafana.dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= draw_grafana.WIDTH
        taken |= cells
