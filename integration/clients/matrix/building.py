"""Makes the drivers that are not Python ready to run, once, in the same cache as the jars."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from integration.clients.confluent.javascript.modules import NodeMissing, fetch_modules
from integration.support.maven import cache_dir

DRIVERS = Path(__file__).with_name("drivers")
GO_LINES = "golines"
"""What the drivers in Go share."""
BUILD_TIMEOUT_S = 1200


class Missing(Exception):
    """The machine lacks what a client needs; str() says what."""


def node(name: str) -> Callable[[], Sequence[str]]:
    """Installs the modules of `package.json` beside the driver."""
    directory = DRIVERS / name

    def command() -> Sequence[str]:
        try:
            modules = fetch_modules(directory / "package.json", name)
        except NodeMissing as error:
            raise Missing(str(error)) from error
        return ("env", f"NODE_PATH={modules}", "node", str(directory / "driver.js"))

    return command


def go(module: str) -> Callable[[], Sequence[str]]:
    """Builds the driver when its sources have changed, into the same cache as the jars."""

    def command() -> Sequence[str]:
        if not shutil.which("go"):
            raise Missing("go is not installed")
        sources = sorted(path for each in (module, GO_LINES) for path in (DRIVERS / each).glob("*.*"))
        key = hashlib.sha256()
        for path in sources:
            key.update(f"{path.parent.name}/{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
        built = cache_dir() / f"driver-{module}-{key.hexdigest()[:16]}"
        if not built.exists():
            _go_build(DRIVERS / module, built)
        return (str(built),)

    return command


def _go_build(sources: Path, built: Path) -> None:
    """Build next to `built` first, so that `built` exists only when it is complete."""
    with tempfile.TemporaryDirectory(dir=built.parent) as directory:
        target = Path(directory) / "driver"
        try:
            done = subprocess.run(
                ["go", "build", "-p", "1", "-o", str(target), "."],
                cwd=sources,
                capture_output=True,
                text=True,
                timeout=BUILD_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Missing(f"go did not build {sources.name} in {BUILD_TIMEOUT_S} s") from None
        if done.returncode != 0:
            raise Missing(f"go cannot build {sources.name}:\n{done.stderr[-2000:]}")
        os.rename(target, built)
