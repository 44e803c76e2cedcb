"""Functions of tests as programs that are tortured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kshim.testing import Work, torture
from kshim.testing.worker import command_of

CODE = """
from kshim.testing import Work

def worker(work: Work) -> None:
    print(work.bootstrap, work.group, work.topic, work.output, work.instance, work.state_dir)
    work.processed(work.topic, 3, 17)
"""
VARIABLES = {
    "KSHIM_BOOTSTRAP": "host:1",
    "KSHIM_GROUP": "g",
    "KSHIM_TOPIC": "in",
    "KSHIM_OUTPUT": "out",
    "KSHIM_INSTANCE": "c1",
    "KSHIM_STATE_DIR": "states/c1",
}


def at_the_top(work: Work) -> None:
    """Stands for a worker."""


def test_a_function_at_the_top_of_a_module_becomes_a_command() -> None:
    assert command_of(at_the_top) == [
        *(sys.executable, "-m", "kshim.testing.worker", __file__, __name__, "at_the_top")
    ]
    assert command_of(["java", "-jar", "worker.jar"]) == ["java", "-jar", "worker.jar"]


def test_other_functions_are_refused_before_anything_starts() -> None:
    def nested(work: Work) -> None:
        raise NotImplementedError

    for refused in (nested, lambda _: None, Work.processed):
        with pytest.raises(ValueError, match="name a function at the top of a module"):
            command_of(refused)
    with pytest.raises(TypeError, match=r"write \['python', 'worker.py'\]"):
        command_of("python worker.py")


def test_the_function_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "test_of_a_user.py"
    file.write_text(CODE)
    command = [sys.executable, "-m", "kshim.testing.worker", str(file), "test_of_a_user", "worker"]
    done = subprocess.run(
        command, env=os.environ | VARIABLES, capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == "host:1 g in out c1 states/c1\nprocessed in 3 17\n"


def test_what_cannot_be_shown_or_survived_is_refused() -> None:
    with pytest.raises(ValueError, match="--report does not show exactly-once"):
        torture(at_the_top, promise="exactly-once")
    with pytest.raises(ValueError, match="no fault is called 'flod'"):
        torture(at_the_top, faults=["flod"])
    with pytest.raises(ValueError, match="--settle has to be 2 s or more"):
        torture(at_the_top, settle_s=1)
