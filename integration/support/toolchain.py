"""Runs other languages' tools for tests, and keeps the files that they fetch and build in a cache.

The cache is $KSHIM_CACHE, or ~/.cache/kshim.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

RUN_TIMEOUT_S = 1800
REASON_CHARACTERS = 2000


class Missing(Exception):
    """The machine lacks something that a test needs. str() says what, and why."""


@contextmanager
def or_skip(who: str) -> Iterator[None]:
    """Skip the test if Missing is raised within the block; in CI, fail. who: the client that cannot run."""
    try:
        yield
    except Missing as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"{who} cannot run: {error}")


def cache_dir() -> Path:
    cache = Path(os.environ.get("KSHIM_CACHE") or Path.home() / ".cache" / "kshim")
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """Return a file or directory in the cache. If it does not exist yet, `make(path)` makes it.

    It is made at another path and then renamed, so that everything in the cache is complete.
    """
    path = cache_dir() / name
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as directory:
            make(Path(directory) / name)
            try:
                os.rename(Path(directory) / name, path)
            except OSError:  # another process has made it first
                if not path.exists():
                    raise
    return path


def key_of(paths: Iterable[Path], *more: str) -> str:
    """A short key for a result, from the contents of its source files, and from `more` inputs."""
    key = hashlib.sha256()
    for path in sorted(paths):
        key.update(f"{path.parent.name}/{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    key.update("\n".join(more).encode())
    return key.hexdigest()[:16]


def need(*tools: str) -> None:
    """Raise Missing if one of the commands is not installed."""
    for tool in tools:
        if not shutil.which(tool):
            raise Missing(f"{tool} is not installed")


def run(command: Sequence[str], *, cwd: Path, what: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a tool that fetches or builds `what`, and return its output. Raises Missing."""
    tool = command[0]
    need(tool)
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"{tool} did not make {what} in {RUN_TIMEOUT_S} s") from None
    if done.returncode != 0:
        reason = (done.stderr + done.stdout).strip()[-REASON_CHARACTERS:]
        raise Missing(f"{tool} cannot make {what}: {reason or 'no reason given'}")
    return done.stdout


def maven(*goal: str, what: str) -> None:
    """Run a goal of Maven that fetches or builds `what`. Raises Missing."""
    run(["mvn", "-q", "-B", *goal], cwd=cache_dir(), what=what)
