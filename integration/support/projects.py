"""Projects of seven tests each, written as users of kshim write them: `integration/serve/projects`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["WITH_PYTEST", "run"]

PROJECTS = Path(__file__).parents[1] / "serve" / "projects"
TIMEOUT_S = 180
OF_A_WORKER = "PYTEST_XDIST_"
"""How the variables begin that pytest-xdist sets for its workers."""
WITH_PYTEST = ("-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider")


def run(
    project: str | Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python in the folder of a project, whose tests do not hear of the workers of these tests."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(OF_A_WORKER)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECTS / project,
        env={**inherited, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
