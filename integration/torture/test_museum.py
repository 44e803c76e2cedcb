"""The proof that a torture finds what it says: a broken program within five seeds; its mended twin passes.

KSHIM_TORTURE_SEEDS=50 plays so many seeds with each mended program; the default is 3.
"""

from __future__ import annotations

import os

import pytest

from integration.support.toolchain import or_skip
from integration.torture.museum.pieces import PIECES, Piece
from integration.torture.playing import program, tortured

pytestmark = pytest.mark.kshim_only("it starts kshim")

SEEDS = int(os.environ.get("KSHIM_TORTURE_SEEDS", "3"))
BROKEN_SEEDS = 5
RUN_S = 90
MENDED = {(each.client, each.mended, each.options): each for each in PIECES}
FEW = frozenset(("confluent-commit-first", "confluent_writing-not-awaited"))


def params(pieces: list[Piece], name: str) -> list[object]:
    return [
        pytest.param(
            each,
            id=f"{each.client}-{getattr(each, name)}",
            marks=[pytest.mark.few] if each.name in FEW else [],
        )
        for each in pieces
    ]


def command_of(client: str, name: str) -> list[str]:
    with or_skip(f"the museum's {client}"):
        return program(client, name)


@pytest.mark.parametrize("piece", params(list(PIECES), "broken"))
def test_a_broken_program_is_found(piece: Piece) -> None:
    command = command_of(piece.client, piece.broken)
    options = ("-q", "--seed", "1", "--runs", str(BROKEN_SEEDS), *piece.options)
    done = tortured(command, *options, timeout_s=BROKEN_SEEDS * RUN_S)
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = (line for line in done.stdout.splitlines() if " is broken: " in line)
    found = {anomaly for anomaly in piece.anomalies if anomaly.value in line}
    assert found, line


@pytest.mark.parametrize("piece", params(list(MENDED.values()), "mended"))
def test_a_mended_program_passes(piece: Piece) -> None:
    command = command_of(piece.client, piece.mended)
    options = ("-q", "--seed", "1", "--runs", str(SEEDS), *piece.options)
    done = tortured(command, *options, timeout_s=SEEDS * RUN_S)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.count(" holds, for ") == SEEDS
