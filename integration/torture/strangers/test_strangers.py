"""Programs of frameworks keep the promises of those, or break them as we know.

KSHIM_TORTURE_SEEDS=10 plays so many seeds with each; the default is 2.
"""

from __future__ import annotations

import os

import pytest

from integration.support.toolchain import or_skip
from integration.torture.playing import tortured
from integration.torture.strangers.programs import SCHEDULE, STRANGERS, Stranger

pytestmark = pytest.mark.kshim_only("it starts kshim")

SEEDS = int(os.environ.get("KSHIM_TORTURE_SEEDS", "2"))
UNTIL_FOUND = 10
RUN_S = 660


def which(found: bool) -> list[object]:
    return [pytest.param(each, id=each.name) for each in STRANGERS if bool(each.found) is found]


@pytest.mark.parametrize("stranger", which(found=False))
def test_a_stranger_keeps_its_promise(stranger: Stranger) -> None:
    with or_skip(stranger.name):
        command = list(stranger.command())
    runs = 1 if SCHEDULE in stranger.options else SEEDS
    options = ("-q", "--seed", "1", "--runs", str(runs), *stranger.options)
    done = tortured(command, *options, timeout_s=runs * RUN_S)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert done.stdout.count(" holds, for ") == runs


@pytest.mark.parametrize("stranger", which(found=True))
def test_a_stranger_breaks_its_promise_as_we_know(stranger: Stranger) -> None:
    with or_skip(stranger.name):
        command = list(stranger.command())
    options = ("-q", "--seed", "1", "--runs", str(UNTIL_FOUND), *stranger.options)
    done = tortured(command, *options, timeout_s=UNTIL_FOUND * RUN_S)
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = (line for line in done.stdout.splitlines() if " is broken: " in line)
    assert any(anomaly.value in line for anomaly in stranger.found), line
