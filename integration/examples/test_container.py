"""The commands of the container's recipe work. They are run without a container engine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import venv
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.support.ports import Slot
from integration.support.readme import ROOT
from kshim.testing import Cluster

pytestmark = pytest.mark.kshim_only("it starts kshim")

RECIPE = (ROOT / "docs" / "container" / "Containerfile").read_text().replace("\\\n", " ")
TIMEOUT_S = 300


def words(instruction: str, data: Path, port: int) -> list[str]:
    """The command of an instruction, for this machine's paths and a free port."""
    (text,) = re.findall(rf"^{instruction}.*?(\[.*\])$", RECIPE, re.MULTILINE)
    command: list[str] = json.loads(text)
    assert command.pop(0) == "kshim"
    return [word.replace("/data", str(data)).replace("9092", str(port)) for word in command]


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def test_the_server_is_healthy_while_it_runs(tmp_path: Path) -> None:
    slot, data = Slot(), tmp_path / "data"
    kshim = [sys.executable, "-m", "kshim"]
    health = [*kshim, *words("HEALTHCHECK", data, slot.port)]
    assert run(*health, cwd=tmp_path).returncode != 0
    with ExitStack() as ending:
        command = [*kshim, *words("ENTRYPOINT", data, slot.port)]
        server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        ending.enter_context(server)
        ending.callback(server.kill)
        assert server.stdout is not None
        assert server.stdout.readline() == f"kshim ready 0.0.0.0:{slot.port}\n"
        assert run(*health, cwd=tmp_path).returncode == 0
        Cluster(f"127.0.0.1:{slot.port}").produce("orders", ["first"])
        server.terminate()
        assert server.wait(20) == 0
    assert run(*health, cwd=tmp_path).returncode != 0


def test_it_copies_all_that_the_wheel_is_built_from(tmp_path: Path) -> None:
    """The build stage's files are enough for a wheel, and the wheel holds every module."""
    copied = [word for line in re.findall(r"^COPY (.*) \S+$", RECIPE, re.MULTILINE) for word in line.split()]
    source, wheels = tmp_path / "source", tmp_path / "wheels"
    source.mkdir()
    for name in copied:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif not name.startswith("--from"):
            shutil.copy(ROOT / name, source)
    modules = {str(path.relative_to(source)) for path in source.glob("*/**/*.py")}
    venv.create(tmp_path / "v", with_pip=True)
    python = tmp_path / "v" / "bin" / "python"
    built = run(python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", wheels, source)
    assert built.returncode == 0, built.stderr
    (wheel,) = wheels.iterdir()
    listed = set(run(python, "-m", "zipfile", "-l", wheel).stdout.split())
    assert modules <= listed
    assert "kshim/testing/plugin.py" in modules
