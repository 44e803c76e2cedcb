"""Call `kshim pipeline` as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from integration.spark.jars import fetch_jars

TIMEOUT_S = 300


def call(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`kshim pipeline` with these arguments and variables, as they are."""
    return subprocess.run(
        [sys.executable, "-m", "kshim", "pipeline", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, **(environment or {})},
    )


def kshim(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a kshim command with the jars that the tests have fetched."""
    return call(*arguments, "--conf", f"spark.jars={','.join(map(str, fetch_jars()))}")
