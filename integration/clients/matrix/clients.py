"""The clients: how each one's driver is started, and what it needs on the machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from integration.support.maven import cache_dir

DRIVERS = "integration.clients.matrix.drivers"
GO_LINES = "golines"
"""What the drivers in Go share."""
BUILD_TIMEOUT_S = 1200


class Missing(Exception):
    """The machine lacks what a client needs; str() says what."""


@dataclass(frozen=True)
class Client:
    """One client library, in the version that is installed."""

    command: Callable[[], Sequence[str]]
    """The driver's command line, without the bootstrap address. Builds what must be built; raises Missing."""
    assignors: frozenset[str] = field(default=frozenset({"range", "roundrobin"}))
    empty_is_null: bool = False
    """Whether a consumer gives an empty key as null."""


def _python(module: str) -> Callable[[], Sequence[str]]:
    return lambda: (sys.executable, "-m", f"{DRIVERS}.{module}")


def _go(module: str) -> Callable[[], Sequence[str]]:
    """Builds the driver when its sources have changed, into the same cache as the jars."""

    def command() -> Sequence[str]:
        if not shutil.which("go"):
            raise Missing("go is not installed")
        drivers = Path(__file__).with_name("drivers")
        sources = sorted(path for each in (module, GO_LINES) for path in (drivers / each).glob("*.*"))
        key = hashlib.sha256()
        for path in sources:
            key.update(f"{path.parent.name}/{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
        built = cache_dir() / f"driver-{module}-{key.hexdigest()[:16]}"
        if not built.exists():
            _go_build(drivers / module, built)
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


ALL_ASSIGNORS = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
CLIENTS = {
    "kafka-python": Client(_python("kafka_python"), frozenset({"range", "roundrobin", "sticky"})),
    "franz-go": Client(_go("franz_go"), ALL_ASSIGNORS),
    "sarama": Client(_go("sarama"), ALL_ASSIGNORS),
    "kafka-go": Client(_go("kafka_go"), empty_is_null=True),
}
