"""Runs `kshim torture` on programs of the museum, and returns what it printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from integration.support.server import COMMAND
from integration.torture.museum import java

TIMEOUT_S = 120
MUSEUM = "integration.torture.museum"


def program(client: str, name: str) -> list[str]:
    """The command of a program of the museum. Raises Missing."""
    if client == "java":
        return java.command(name)
    return [sys.executable, "-m", f"{MUSEUM}.{client}", name]


def tortured(
    command: list[str], *options: str, cwd: Path | None = None, timeout_s: float = TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """Torture a command; the options are those of `kshim torture`."""
    return subprocess.run(
        [*COMMAND, "torture", *options, "--", *command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
