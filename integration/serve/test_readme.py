"""The README's examples work; its PySpark block is run in `integration/spark`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from integration.support.readme import block_with, python_blocks
from integration.support.server import Server


def run(block: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", block],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_block_is_run() -> None:
    """Every block is run here or in `integration/spark`: a new one needs a test."""
    words = ("KafkaConsumer", "SparkSession", "kshim.testing")
    assert [sum(word in block for word in words) for block in python_blocks()] == [1, 1, 1]


def test_kafka_python(server: Server, tmp_path: Path) -> None:
    output = run(block_with("KafkaConsumer", server.bootstrap), tmp_path)
    assert output == "greetings 0 0 b'en' b'hello'\n"


@pytest.mark.kshim_only("it starts kshim")
def test_in_a_test(tmp_path: Path) -> None:
    output = run(block_with("kshim.testing"), tmp_path)
    assert output.startswith("served by 127.0.0.1:")
