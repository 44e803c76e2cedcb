"""The plugin starts to import kshim as soon as a collected test needs a server, and for no other reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPORT = """
from kshim.testing import processes

def pytest_configure(config):
    processes.warm_up = lambda: print("warms up")
"""
OTHER = """
import pytest

@pytest.fixture
def kshim():
    return None
"""
TEST = """
def test_it(kshim):
    pass
"""


@pytest.mark.parametrize(
    ("test", "options", "warms_up"),
    [(TEST, [], True), (TEST, ["--collect-only"], False), (OTHER + TEST, [], False)],
)
def test_it_warms_up(tmp_path: Path, test: str, options: list[str], warms_up: bool) -> None:
    (tmp_path / "conftest.py").write_text(REPORT)
    (tmp_path / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-s", "-q", "--setup-plan", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("warms up" in done.stdout) == warms_up
