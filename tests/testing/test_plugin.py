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


SHOWS = """
def test_it(kshim_brokers, kshim_properties, kshim_topics, kshim_tls):
    print(kshim_brokers, kshim_properties, kshim_topics, kshim_tls)
"""
INI = """
[pytest]
kshim_brokers = 2
kshim_properties =
    num.partitions = 3
    flush.policy=os
kshim_topics =
    orders:3
    audit
"""


def run_pytest(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-s", "-q", *options, str(tmp_path)]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (
            [],
            "2 {'num.partitions': '3', 'flush.policy': 'os'} {'orders': 3, 'audit': None} False",
        ),
        (
            ["--kshim-brokers", "3", "--kshim-property", "num.partitions=4"],
            "3 {'num.partitions': '4', 'flush.policy': 'os'} {'orders': 3, 'audit': None} False",
        ),
        (["--kshim-property", "num.partitions"], "'num.partitions' is no KEY=VALUE"),
        (["-o", "kshim_topics=orders:x"], "'orders:x' is no TOPIC or TOPIC:PARTITIONS"),
        (["--kshim-brokers", "0"], "'0' is no number of brokers; write 1 or more"),
    ],
)
def test_what_the_server_is_started_with(tmp_path: Path, options: list[str], shown: str) -> None:
    (tmp_path / "pytest.ini").write_text(INI)
    (tmp_path / "test_it.py").write_text(SHOWS)
    assert shown in run_pytest(tmp_path, *options).stdout


@pytest.mark.parametrize(
    ("test", "options", "warms_up"),
    [(TEST, [], True), (TEST, ["--collect-only"], False), (OTHER + TEST, [], False)],
)
def test_it_warms_up(tmp_path: Path, test: str, options: list[str], warms_up: bool) -> None:
    (tmp_path / "conftest.py").write_text(REPORT)
    (tmp_path / "test_it.py").write_text(test)
    done = run_pytest(tmp_path, "--setup-plan", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("warms up" in done.stdout) == warms_up
