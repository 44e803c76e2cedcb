"""Plays scenarios with real clients, all those of one server at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from integration import apache_kafka
from integration.apache_kafka.jars import fetch_class_path
from integration.differential.playing import pairs
from integration.plan.comparing import Compared
from integration.plan.playing import measured
from integration.plan.scenarios import DEPLOYMENT, DURATION_MS, OF_PLACE, PARTITIONS, Place, Scenario
from integration.support.server import COMMAND, Server, set_options
from kshim.plan.run import Run


def played(place: Place, scenarios: Iterable[Scenario], directory: Path) -> Sequence[Compared]:
    """Play the scenarios of one place on a server of their own, all groups at once. Raises Missing."""
    chosen = [each for each in scenarios if each.place is place]
    if place is Place.APACHE:
        fetch_class_path()
    command = apache_kafka.COMMAND if place is Place.APACHE else COMMAND
    server = Server(directory / place.name, set_options(OF_PLACE[place]), command=command).start()
    try:
        asyncio.run(asyncio.wait_for(pairs.wait_loaded(server), pairs.READY_TIMEOUT_S))
        with ThreadPoolExecutor(sum(each.groups for each in chosen)) as threads:
            plays = [
                [threads.submit(_played, server, each, number) for number in range(each.groups)]
                for each in chosen
            ]
            groups = [[play.result() for play in of_one] for of_one in plays]
    finally:
        server.stop()
    return [Compared(each, each.predict(), runs) for each, runs in zip(chosen, groups, strict=True)]


def _played(server: Server, scenario: Scenario, number: int) -> Run:
    group = f"{scenario.name}-{number}"
    tells_why = scenario.place is not Place.APACHE
    return measured(server, group, scenario.setting, DEPLOYMENT, DURATION_MS, PARTITIONS, tells_why=tells_why)
