"""Prometheus itself reads the metrics, and finds what the dashboard asks for."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.draw_grafana import FILE
from integration.page.conftest import tool
from integration.page.world import World
from integration.support.awaiting import wait_until

CONFIG = """
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: kshim
    static_configs: [{targets: ["%s"]}]
"""


class Prometheus:
    """A running Prometheus that scrapes one server."""

    def __init__(self, program: str, target: str, directory: Path) -> None:
        config = directory / "prometheus.yml"
        config.write_text(CONFIG % target)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._address = f"127.0.0.1:{free.getsockname()[1]}"
        options = {
            "config.file": config,
            "storage.tsdb.path": directory / "data",
            "web.listen-address": self._address,
        }
        with (directory / "log").open("w") as log:
            self.process = subprocess.Popen(
                [program, *(f"--{name}={value}" for name, value in options.items())], stdout=log, stderr=log
            )

    def query(self, query: str) -> list[Any]:
        """The result of a query. Raises OSError while Prometheus starts, and if the query is wrong."""
        url = f"http://{self._address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            found: list[Any] = json.load(answer)["data"]["result"]
        return found

    def scrapes(self) -> bool:
        """True once Prometheus has scraped the server twice, so that rates are known."""
        try:
            return any(
                float(each["value"][1]) >= 2 for each in self.query("count_over_time(kshim_ready[1m])")
            )
        except OSError:
            return False


@pytest.fixture(scope="module")
def prometheus(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    program = tool("prometheus")
    found = Prometheus(
        program, urllib.parse.urlsplit(world.http).netloc, tmp_path_factory.mktemp("prometheus")
    )
    wait_until(found.scrapes, 30, "Prometheus has scraped twice")
    yield found
    found.process.terminate()
    found.process.wait(20)


def test_promtool_finds_no_fault(world: World) -> None:
    program = tool("promtool")
    with urllib.request.urlopen(f"{world.http}/metrics", timeout=10) as answer:
        metrics = answer.read()
    done = subprocess.run([program, "check", "metrics"], input=metrics, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_lag_is_what_the_group_is_behind(world: World, prometheus: Prometheus) -> None:
    def lag() -> float:
        (found,) = prometheus.query('sum(kafka_consumergroup_lag{consumergroup="billing"})')
        return float(found["value"][1])

    before = lag()
    world.produce("payments", 3)
    wait_until(lambda: lag() == before + 3, 10, "the next scrape tells it")


OF_UPSTREAM = "kshim_upstream_"


def test_the_dashboard_s_queries_are_answered(prometheus: Prometheus) -> None:
    for panel in json.loads(FILE.read_text())["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"].replace("$__rate_interval", "1m").replace("$group", ".*")
            found = prometheus.query(query)
            # The server of this test has no upstream; Prometheus still refuses a wrong query.
            assert bool(found) is (OF_UPSTREAM not in query), f"{panel['title']}: {found} for {query}"
