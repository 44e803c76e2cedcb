"""Instances as processes: killed with their children, frozen, and heard."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from kshim.torture.processes import CannotRun, Instance, Pulse, end_all

pytestmark = [pytest.mark.kshim_only("it starts no server"), pytest.mark.few]

COUNTS = "import time\nn = 0\nwhile True:\n    print(n, flush=True)\n    n += 1\n    time.sleep(0.01)"
DEAF = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(60)"


class Heard:
    """The lines of an instance."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, name: str, line: str, at_ms: float) -> None:
        self.lines.append(line)

    def wait(self, more: int = 1) -> None:
        """Wait for more lines."""
        wanted, end_s = len(self.lines) + more, time.monotonic() + 20
        while len(self.lines) < wanted:
            assert time.monotonic() < end_s, self.lines
            time.sleep(0.005)


def instance(code: str, directory: Path, heard: Heard, **env: str) -> Instance:
    return Instance("c1", [sys.executable, "-c", code], env, directory, heard)


def test_a_frozen_instance_says_nothing_until_it_goes_on(tmp_path: Path) -> None:
    heard = Heard()
    one = instance(COUNTS, tmp_path, heard)
    one.start()
    try:
        heard.wait(3)
        one.freeze()
        state = Path(f"/proc/{one._process.pid}/stat")
        end_s = time.monotonic() + 20
        while state.read_text().rpartition(")")[2].split()[0] != "T":
            assert time.monotonic() < end_s
        one.go_on()
        heard.wait(3)
    finally:
        one.close()
    assert not one.runs
    assert one.status == -9


def test_a_kill_reaches_the_children(tmp_path: Path) -> None:
    heard = Heard()
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\ntime.sleep(60)"
    )
    one = instance(code, tmp_path, heard)
    one.start()
    heard.wait()
    child = Path(f"/proc/{heard.lines[0]}")
    assert child.exists()
    one.close()
    end_s = time.monotonic() + 20
    while child.exists() and " Z " not in (child / "stat").read_text():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_who_does_not_end_is_killed_and_named(tmp_path: Path) -> None:
    heard = Heard()
    one = instance(DEAF, tmp_path, heard)
    one.start()
    heard.wait()
    assert end_all([one], timeout_s=0.2) == ["c1"]
    assert not one.runs


def test_the_environment_and_the_last_words(tmp_path: Path) -> None:
    heard = Heard()
    one = instance("import os, sys; sys.exit('no ' + os.environ['WHAT'])", tmp_path, heard, WHAT="settings")
    one.start()
    end_s = time.monotonic() + 20
    while one.runs:
        assert time.monotonic() < end_s
        time.sleep(0.01)
    assert (one.status, one.last_words()) == (1, ["no settings"])


def test_a_stall_shows_in_the_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    pulse = Pulse()
    monkeypatch.setattr(pulse, "_stalls", [(1000.0, 1500.0), (1520.0, 2000.0)])
    assert pulse.late_ms(2010) == 1010
    assert pulse.late_ms(1510) == 510
    assert pulse.late_ms(2500) == 0
    assert pulse.late_ms(900) == 0


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="cannot run no-such-program: No such file or directory"):
        Instance("c1", ["no-such-program"], {}, tmp_path, Heard()).start()
