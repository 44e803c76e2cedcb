"""Each fault with each client: the application sees what the table says, and no record is lost.

KSHIM_RESULTS=faults.jsonl tox -e faults
python -m integration.clients.faults.results faults.jsonl
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.clients.faults.cases import CASES, CLIENTS, KAFKA_PYTHON, Case
from integration.clients.faults.results import Result, note
from integration.clients.faults.watching import DidNotBegin, Seen, watch
from integration.clients.matrix.driver import Driver
from kshim.testing import Kshim

pytestmark = pytest.mark.kshim_only("only kshim has faults")
RESULTS = "KSHIM_RESULTS"
"""The file that gets the results."""
ATTEMPTS = 4
"""In one of some thirty runs a consumer of kafka-python 3.0 hangs when it joins, with any broker: its thread
waits in `kafka/net/selector.py` for a coroutine that is never called again. That says nothing of a fault.
"""


def _params() -> list[object]:
    """Each client in one process, where it is started once."""
    return [
        pytest.param(
            client,
            case,
            id=f"{client}-{case.name}",
            marks=[pytest.mark.xdist_group(client), *([pytest.mark.few] if case.is_one_of_few else [])],
        )
        for client in CLIENTS
        for case in CASES
    ]


@pytest.mark.parametrize(("client", "case"), _params())
def test_what_the_application_sees(
    kshim: Kshim, drivers: Callable[..., Driver], client: str, case: Case
) -> None:
    seen, lost = _watched(kshim, drivers, client, case)
    path = os.environ.get(RESULTS)
    if path:
        version = drivers(client).hello()[1]
        note(
            Path(path),
            Result(client, version, case.name, sorted(seen.said()), seen.late_s, seen.has_some_twice),
        )
    uncertain = set(case.either_way)
    assert seen.said() - uncertain == case.said_by(client) - uncertain, seen
    assert not lost, f"{seen}: the offsets {sorted(lost)} were passed over"
    assert seen.late_s < case.late_s, seen


def _watched(kshim: Kshim, drivers: Callable[..., Driver], client: str, case: Case) -> tuple[Seen, set[int]]:
    for attempts_left in reversed(range(ATTEMPTS if client == KAFKA_PYTHON else 1)):
        try:
            seen, lost = watch(kshim, drivers(client), case.when, case.api, case.fault, case.options)
        except DidNotBegin:
            if not attempts_left:
                raise
        else:
            if seen.goes_on or not attempts_left:
                return seen, lost
        drivers(client, again=True)
    raise AssertionError("no attempt was made")
