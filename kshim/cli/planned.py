"""Runs `kshim plan`: plays the deployment with each setting, and prints what becomes of the group."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from kshim.cli.plan_options import settings_of, steps_of
from kshim.cli.tables import print_table
from kshim.plan.deployment import Deployment, Kind, NotPossible, deployed
from kshim.plan.drawing import drawn
from kshim.plan.run import Predicted, predicted
from kshim.plan.setting import BrokerKind, ClientKind, Setting
from kshim.recorder.story import seconds

TITLES: Final = (
    "Setting",
    "Rebalances",
    "Moves",
    "Without owner",
    "Partition-seconds",
    "Pause p50",
    "p99",
    "Longest",
    "Member p50",
    "p99",
)
VERSION: Final = 1
"""The version of the JSON format. It rises when a field changes its meaning, not when fields are added."""


def run_plan(given: Mapping[str, Any]) -> None:
    """Predict, and print."""
    settings = settings_of(given["settings"], _common(given))
    members, duration_ms, partitions = given["members"], given["duration"], given["partitions"]
    try:
        seeds = range(given["seed"], given["seed"] + given["runs"])
        deployments = [deployed(members, steps_of(given), seed) for seed in seeds]
    except NotPossible as error:
        raise click.UsageError(str(error)) from None
    began_s = time.monotonic()
    outcomes = [predicted(each, deployments, duration_ms, partitions, given["seed"]) for each in settings]
    took_s = time.monotonic() - began_s
    if given["plot"] is not None:
        _save(given["plot"], drawn(outcomes, deployments[0], duration_ms, partitions))
    if given["as_json"]:
        click.echo(json.dumps(_shown(outcomes, given, deployments)))
        return
    click.echo(_headline(given, deployments[0], took_s))
    print_table(TITLES, [_row(each) for each in outcomes])


def _save(file: Path, drawing: str) -> None:
    try:
        file.write_text(drawing)
    except OSError as error:
        raise click.UsageError(f"--plot {file}: {error.strerror}; name a file that can be written") from None


def _common(given: Mapping[str, Any]) -> Setting:
    """The values of all settings."""
    return Setting(
        name="",
        client=ClientKind(given["client"]),
        broker=BrokerKind(given["broker"]),
        session_ms=given["session"],
        heartbeat_ms=given["heartbeat"],
        rebalance_ms=given["max_poll"],
        initial_delay_ms=given["initial_delay"],
        processing_ms=given["processing"],
    )


def _headline(given: Mapping[str, Any], deployment: Deployment, took_s: float) -> str:
    acts = [act.kind for act in deployment.acts if act.at_ms < given["duration"]]
    done = ", ".join(f"{acts.count(kind)} {noun}" for kind, noun in _NOUNS.items() if kind in acts)
    group = f"{given['members']} members, {given['partitions']} partitions"
    return f"{group}, {given['duration'] / 1000:g} s: {done}; {given['runs']} runs in {took_s:.1f} s"


_NOUNS: Final = {Kind.CLOSE: "closed", Kind.CRASH: "crashed", Kind.START: "started"}


def _row(outcome: Predicted) -> Sequence[str]:
    it = outcome.figures
    return (
        outcome.setting.name,
        _count(it.rebalances),
        _count(it.moves),
        f"{it.unowned_share:.3%}",
        f"{it.unowned_ms / 1000:.1f}",
        seconds(it.partition_p50_ms),
        seconds(it.partition_p99_ms),
        seconds(it.partition_longest_ms),
        seconds(it.member_p50_ms),
        seconds(it.member_p99_ms),
    )


def _count(mean: float) -> str:
    return f"{mean:.1f}".removesuffix(".0")


def _shown(
    outcomes: Sequence[Predicted], given: Mapping[str, Any], deployments: Sequence[Deployment]
) -> object:
    return {
        "version": VERSION,
        "members": given["members"],
        "partitions": given["partitions"],
        "duration_ms": given["duration"],
        "seed": given["seed"],
        "acts": [[act._asdict() for act in deployment.acts] for deployment in deployments],
        "settings": [
            {
                **each.setting._asdict(),
                "assignor": each.setting.chosen_assignor,
                "heartbeat_ms": each.setting.interval_ms,
                "initial_delay_ms": each.setting.delay_ms,
                "figures": each.figures._asdict(),
                "unowned": [[list(span) for span in run.happened.unowned] for run in each.runs],
            }
            for each in outcomes
        ],
    }
