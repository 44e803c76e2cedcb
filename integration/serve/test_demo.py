"""`kshim demo` as a user runs it: it loses nothing, and says why the group rebalanced."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from integration.support.server import COMMAND, run_to_end

pytestmark = pytest.mark.kshim_only("it is kshim's own command line")

PROMISES = 5


def test_a_run_loses_nothing(tmp_path: Path) -> None:
    done = run_to_end("demo", "--seconds", "0", "--svg", "demo.svg", cwd=tmp_path, timeout_s=180)
    assert done.returncode == 0, done.stdout + done.stderr
    (counts,) = re.findall(r"(\d+) acknowledged, (\d+) of them received", done.stdout)
    assert int(counts[0]) == int(counts[1]) > 0
    assert done.stdout.count("\nok  ") == PROMISES
    story = " ".join(done.stdout.split("Why the group rebalanced")[1].split())
    assert "a member joined: consumer-3 (client at 127.0.0.1)" in story
    assert "a member's session expired: consumer-2 (client at 127.0.0.1)" in story
    assert (tmp_path / "demo.svg").read_text().count("consumer-2") > 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_can_be_stopped(tmp_path: Path, number: signal.Signals) -> None:
    command = [*COMMAND, "demo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        assert any("consumer-1 and consumer-2 join" in line for line in demo.stdout)
        demo.send_signal(number)
        assert demo.stdout.read().endswith("stopped\n")
        assert demo.stderr.read() == ""
        assert demo.wait(timeout=30) == 128 + number
