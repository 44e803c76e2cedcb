"""The programs of docs/other-languages.md start a server and use it, each with a client of its language."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from integration.apache_kafka.jars import fetch_class_path
from integration.clients.confluent.javascript.modules import fetch_modules
from integration.clients.matrix.building import DRIVERS
from integration.support.readme import ROOT
from integration.support.toolchain import need, or_skip, run

pytestmark = pytest.mark.kshim_only("it starts kshim")

PAGE = ROOT / "docs" / "other-languages.md"
FILE = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TIMEOUT_S = 180


def run_there(
    *command: str, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command that has to succeed."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A directory with the files of the page, and `kshim` on the PATH."""
    for name, text in FILE.findall(PAGE.read_text()):
        (tmp_path / name).write_text(text)
    kshim = tmp_path / "bin" / "kshim"
    kshim.parent.mkdir()
    kshim.write_text(f'#!/bin/sh\nexec {sys.executable} -m kshim "$@"\n')
    kshim.chmod(0o755)
    return tmp_path


@pytest.fixture(autouse=True)
def kshim_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


def test_java(page: Path) -> None:
    with or_skip("Java"):
        need("java", "javac")
        class_path = fetch_class_path()
    run_there("javac", "-cp", class_path, "Kshim.java", "Orders.java", cwd=page)
    done = run_there("java", "-cp", f"{class_path}:.", "Orders", cwd=page)
    assert done.stdout == "42 first\n"


def test_go(page: Path) -> None:
    driver = DRIVERS / "franz_go"
    module = (driver / "go.mod").read_text()
    (page / "go.mod").write_text(
        re.sub(r"^(module .*|.*golines.*)$", "", module, flags=re.MULTILINE) + "\nmodule orders\n"
    )
    shutil.copy(driver / "go.sum", page)
    with or_skip("Go"):
        run(["go", "mod", "tidy"], cwd=page, what="its modules")
    run_there("go", "test", "-count", "1", ".", cwd=page)


def test_node(page: Path) -> None:
    with or_skip("Node"):
        modules = fetch_modules(DRIVERS / "kafkajs" / "package.json", "kafkajs")
    run_there("node", "--test", cwd=page, environment={"NODE_PATH": str(modules)})
