"""Runs a function of `loads/` in a process of its own, which is the load generator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any

from benchmarks.processor import Measured
from benchmarks.servers import ROOT, Target

TIMEOUT_S = 900

Load = Mapping[str, Any]
"""The arguments of a load: what JSON can hold."""


class GeneratorFailed(Exception):
    """The process ended with an error; str() is its last line."""


def find(function: str) -> Any:
    """`function`: `module:name`, in this package."""
    module, _, name = function.partition(":")
    return getattr(import_module(f"benchmarks.{module}"), name)


def generate(function: str, target: Target, load: Load, seconds: float) -> Measured:
    """Run `function(target, load, seconds)` in a new process; return its figures. Raises GeneratorFailed."""
    asked = {"function": function, "target": asdict(target), "load": dict(load), "seconds": seconds}
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "benchmarks.generator"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GeneratorFailed(f"not finished after {TIMEOUT_S} s") from None
    if done.returncode:
        raise GeneratorFailed(" ".join(done.stderr.strip().splitlines()[-1:]) or f"status {done.returncode}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    asked = json.load(sys.stdin)
    measured: Measured = find(asked["function"])(Target(**asked["target"]), asked["load"], asked["seconds"])
    print(json.dumps(measured.as_dict()))


if __name__ == "__main__":
    main()
