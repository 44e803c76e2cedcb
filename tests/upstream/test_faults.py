"""Which faults have an effect in front of an upstream."""

from __future__ import annotations

import pytest

from kshim.faults.fault import fault_of
from kshim.upstream.faults import why_never


@pytest.mark.parametrize(
    "given",
    [
        {"api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER"},
        {"api": "Metadata", "error": "LEADER_NOT_AVAILABLE"},
    ],
)
def test_an_error_that_would_strike_nothing_is_refused(given: dict[str, str]) -> None:
    why = why_never(fault_of(given))
    assert why.startswith(
        f"{given['error']} stands at partitions or topics in the answer to {given['api']}, "
    )
    assert why.endswith("expected --delay-ms, --drop, --close, --stall-ms or --bytes-per-s")


@pytest.mark.parametrize(
    "given",
    [
        {"api": "Fetch", "error": "FETCH_SESSION_ID_NOT_FOUND"},
        {"api": "Fetch", "delay_ms": 5},
        {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"},
        {"error": "NOT_COORDINATOR"},
    ],
)
def test_what_may_strike_is_not(given: dict[str, object]) -> None:
    assert why_never(fault_of(given)) == ""
