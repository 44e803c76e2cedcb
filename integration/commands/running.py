"""Runs `kshim` as a user would in another directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from integration.support.server import HEEDS_SIGINT

TIMEOUT_S = 60
ROOT = Path(__file__).parents[2]


class Kshim:
    """Runs commands with KSHIM_BOOTSTRAP in their environment."""

    def __init__(self, bootstrap: str, directory: Path, **environment: str) -> None:
        self.bootstrap = bootstrap
        self.directory = directory
        self.python = sys.executable
        kept = {name: text for name, text in os.environ.items() if not name.startswith("KSHIM_")}
        path = os.pathsep.join(filter(None, (str(ROOT), kept.get("PYTHONPATH", ""))))
        self.environment = {**kept, "PYTHONPATH": path, "KSHIM_BOOTSTRAP": bootstrap, **environment}

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a command until it ends."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.directory,
            env=self.environment,
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command with pipes. SIGINT ends it, also if the tests were started in the background."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*HEEDS_SIGINT, *self.command(*arguments)],
            cwd=self.directory,
            env=self.environment,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        )

    def command(self, *arguments: str) -> list[str]:
        return [self.python, "-m", "kshim", *arguments]

    def __call__(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run a command, which must succeed without a word on standard error. Return what it prints."""
        done = self.run(*arguments, stdin=stdin)
        assert (done.returncode, done.stderr) == (0, b""), (arguments, done)
        return done.stdout.decode()

    def json(self, *arguments: str) -> Any:
        """Run a command with --json, and return what it prints."""
        return json.loads(self(*arguments, "--json"))

    def refusal(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run a command, which must end with status 2 and one line. Return the line."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 2, (arguments, done)
        (line,) = done.stderr.decode().splitlines()
        return line.removeprefix("kshim: ")
