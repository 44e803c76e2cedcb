"""Jars from Maven's repositories, kept in a cache: $KSHIM_JARS, or ~/.cache/kshim/jars."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

FETCH_TIMEOUT_S = 300


class JarsMissing(Exception):
    """A jar cannot be had; str() says which and why."""


def cache_dir() -> Path:
    cache = Path(os.environ.get("KSHIM_JARS") or Path.home() / ".cache" / "kshim" / "jars")
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def maven(*goal: str, what: str) -> None:
    """Run a goal of Maven that fetches `what`. Raises JarsMissing."""
    try:
        done = subprocess.run(
            ["mvn", "-q", "-B", *goal],
            cwd=cache_dir(),
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise JarsMissing("Maven (mvn) is not installed") from None
    except subprocess.TimeoutExpired:
        raise JarsMissing(f"mvn did not fetch {what} in {FETCH_TIMEOUT_S} s") from None
    if done.returncode != 0:
        output = (done.stdout + done.stderr).strip().splitlines()
        raise JarsMissing(f"mvn cannot fetch {what}: {output[0] if output else 'no reason given'}")
