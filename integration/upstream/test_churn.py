"""The churn finds what is wrong, and nothing is wrong in two of its rounds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from integration.upstream.offsets_seen import OffsetsSeen

ROOT = Path(__file__).parents[2]
WITHIN_S = 400


def test_a_record_that_is_missing_is_named() -> None:
    seen = OffsetsSeen("copies")
    for offset in (0, 1, 3):
        seen.note(7, offset)
    assert seen.covers({7: 2})
    assert not seen.covers({7: 3})
    assert seen.missing({7: 4, 8: 1}) == [
        "copies: record 7-2 is missing, of 4",
        "copies: record 8-0 is missing, of 1",
    ]


def test_a_record_that_comes_again_is_named() -> None:
    seen = OffsetsSeen("copies")
    for offset in (0, 1, 1, 3, 3):
        seen.note(7, offset)
    assert seen.twice == ["copies: record 7-1 came again", "copies: record 7-3 came again"]
    assert seen.count == 3


def test_two_rounds(class_path: str) -> None:
    command = [sys.executable, "-m", "integration.upstream.churn", "--rounds", "2", "--seed", "1"]
    done = subprocess.run(
        [*command, "--faults", "kill,drain"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "0 lost, gone back, owned twice, or read twice in read_committed" in done.stdout
