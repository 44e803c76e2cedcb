"""Write the dashboard docs/grafana.json from the panels below.

python -m docs.draw_grafana        writes it anew
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("grafana.json")
SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH = 24
RATE = "[$__rate_interval]"


class Panel(NamedTuple):
    """One panel: its queries by the texts of their legends."""

    title: str
    queries: dict[str, str]
    unit: str = "short"
    width: int = 8
    kind: str = "timeseries"
    stacked: bool = False


def _quantile(quantile: float, metric: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({quantile}, sum by ({labels}) (rate({metric}_bucket{RATE})))"


def _by_group(query: str) -> str:
    return f"sum by (consumergroup) ({query})"


_GROUP = '{consumergroup=~"$group"}'
_LATENCY = "kshim_kafka_request_latency_seconds"

ROWS: dict[str, tuple[Panel, ...]] = {
    "Groups": (
        Panel(
            "Lag",
            {"{{consumergroup}}": f"sum by (consumergroup) (kafka_consumergroup_lag{_GROUP})"},
            width=12,
        ),
        Panel("Members", {"{{consumergroup}}": f"kafka_consumergroup_members{_GROUP}"}, width=6),
        Panel(
            "Groups by state",
            {"{{state}}": f"sum by (state) (kshim_consumergroup_state{_GROUP})"},
            width=6,
            stacked=True,
        ),
        Panel(
            "Lag by partition",
            {
                "{{consumergroup}} {{topic}}-{{partition}}": f"topk(20, kafka_consumergroup_lag{_GROUP})",
            },
            width=12,
        ),
        Panel(
            "Records committed per second",
            {
                "{{consumergroup}}": _by_group(f"rate(kafka_consumergroup_current_offset{_GROUP}{RATE})"),
            },
            unit="cps",
            width=12,
        ),
    ),
    "Rebalances": (
        Panel(
            "Rebalances by cause",
            {"{{cause}}": f"sum by (cause) (increase(kshim_rebalances_total{RATE}))"},
            width=12,
            stacked=True,
        ),
        Panel(
            "How long they take",
            {
                "half": _quantile(0.5, "kshim_rebalance_duration_seconds"),
                "all but 5 %": _quantile(0.95, "kshim_rebalance_duration_seconds"),
            },
            unit="s",
            width=6,
        ),
        Panel("Generation", {"{{consumergroup}}": f"kshim_consumergroup_generation{_GROUP}"}, width=6),
    ),
    "Topics": (
        Panel(
            "Records per second",
            {"{{topic}}": f"sum by (topic) (rate(kafka_topic_partition_current_offset{RATE}))"},
            unit="cps",
        ),
        Panel(
            "Records kept",
            {
                "{{topic}}": "sum by (topic) (kafka_topic_partition_current_offset"
                " - kafka_topic_partition_oldest_offset)"
            },
        ),
        Panel(
            "Partitions that lack replicas or a leader",
            {
                "under-replicated": "sum(kafka_topic_partition_under_replicated_partition)",
                "without a leader": "count(kafka_topic_partition_leader < 0) or vector(0)",
            },
        ),
    ),
    "Requests": (
        Panel(
            "Requests per second",
            {"{{request}}": f"sum by (request) (rate({_LATENCY}_count{RATE}))"},
            unit="reqps",
        ),
        Panel("Latency, all but 1 %", {"{{request}}": _quantile(0.99, _LATENCY, "request")}, unit="s"),
        Panel(
            "Bytes per second",
            {
                "received": f"rate(kshim_kafka_received_bytes_total{RATE})",
                "sent": f"rate(kshim_kafka_sent_bytes_total{RATE})",
            },
            unit="Bps",
        ),
        Panel("Connections", {"{{state}}": "sum by (state) (kshim_connections)"}, stacked=True),
        Panel(
            "Refused per second", {"refused": f"rate(kshim_kafka_requests_refused_total{RATE})"}, unit="reqps"
        ),
        Panel("Brokers that run", {"brokers": "kafka_brokers", "ready": "kshim_ready"}, kind="stat"),
    ),
    "Server": (
        Panel(
            "Disk, all but 1 %",
            {"{{operation}}": _quantile(0.99, "kshim_storage_write_duration_seconds", "operation")},
            unit="s",
        ),
        Panel("Writes that wait for the disk", {"writes": "kshim_storage_queued_writes"}),
        Panel(
            "Memory for requests and replies",
            {
                "not read": "kshim_memory_unread_bytes",
                "not complete": "kshim_memory_incomplete_bytes",
                "budget": "kshim_memory_budget_bytes",
            },
            unit="bytes",
        ),
        Panel("Memory of the process", {"resident": "process_resident_memory_bytes"}, unit="bytes"),
        Panel("Processor", {"share": f"rate(process_cpu_seconds_total{RATE})"}, unit="percentunit"),
        Panel("Version", {"{{version}}": "kshim_build_info"}, kind="stat"),
    ),
    "Upstream": (
        Panel(
            "Brokers of the upstream that run",
            {"{{broker}}": "kshim_upstream_broker_runs", "it answers": "kshim_upstream_answers"},
        ),
        Panel(
            "Shards of groups",
            {"led": "sum(kshim_upstream_shards_led)", "assigned": "sum(kshim_upstream_shards_assigned)"},
        ),
        Panel(
            "Shards that change hands",
            {
                "taken over": f"increase(kshim_upstream_shards_taken_over_total{RATE})",
                "lost": f"increase(kshim_upstream_shards_lost_total{RATE})",
            },
        ),
        Panel(
            "What waits for the upstream",
            {
                "writes of groups": "kshim_upstream_journal_lag_seconds",
                "copies of offsets": "kshim_upstream_offsets_lag_seconds",
                "proofs": "kshim_upstream_proof_age_seconds",
            },
            unit="s",
            width=12,
        ),
        Panel(
            "How much waits for it",
            {
                "writes of groups": "kshim_upstream_journal_queued_writes",
                "copies of offsets": "kshim_upstream_offsets_uncopied",
            },
            width=12,
        ),
    ),
}


def dashboard() -> dict[str, Any]:
    """The dashboard as JSON."""
    return {
        "title": "kshim",
        "uid": "kshim",
        "tags": ["kafka", "kshim"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
                {
                    "name": "group",
                    "label": "Group",
                    "type": "query",
                    "datasource": SOURCE,
                    "query": "label_values(kafka_consumergroup_members, consumergroup)",
                    "refresh": 2,
                    "includeAll": True,
                    "multi": True,
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": list(_panels()),
    }


def _panels() -> Any:
    y = number = 0
    for row, panels in ROWS.items():
        number += 1
        place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        yield {"id": number, "type": "row", "title": row, "gridPos": place, "collapsed": False, "panels": []}
        x, y = 0, y + 1
        for panel in panels:
            if x + panel.width > WIDTH:
                x, y = 0, y + 8
            number += 1
            yield _panel(number, panel, {"x": x, "y": y, "w": panel.width, "h": 8})
            x += panel.width
        y += 8


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    stacking = {"mode": "normal" if panel.stacked else "none"}
    custom = {"fillOpacity": 30 if panel.stacked else 8, "stacking": stacking, "showPoints": "never"}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": custom if panel.kind == "timeseries" else {},
            },
            "overrides": [],
        },
        "options": {"tooltip": {"mode": "multi"}} if panel.kind == "timeseries" else {},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for place, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def drawn() -> str:
    """The file's text."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(drawn())
