"""`kshim users` without a server: the users of a data directory, before its first start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "s3cret-password"


def kshim(directory: Path, *arguments: str, told: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kshim", "users", *arguments, "--data-dir", str(directory)]
    return subprocess.run(command, input=told, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.thorough
def test_users_before_the_first_start(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    done = kshim(directory, "add", "alice", "--password-file", "-", told=f"{SECRET}\n")
    assert (done.returncode, done.stdout) == (
        0,
        "alice may authenticate with SCRAM-SHA-256 and SCRAM-SHA-512\n",
    )
    options = ("--mechanism", "SCRAM-SHA-512", "--iterations", "8192")
    kshim(directory, "add", "bob", "--password-file", "-", *options, told=SECRET)
    kshim(directory, "remove", "alice", "--mechanism", "SCRAM-SHA-256")
    assert json.loads(kshim(directory, "list", "--json").stdout) == [
        {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 4096},
        {"user": "bob", "mechanism": "SCRAM-SHA-512", "iterations": 8192},
    ]
    kept = b"".join(path.read_bytes() for path in directory.iterdir() if path.is_file())
    assert b"alice" in kept
    assert SECRET.encode() not in kept


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "told", "said"),
    [
        (["list"], "", "there is no data directory"),
        (["remove", "alice"], "", "there is no data directory"),
        (["add", "alice"], SECRET, "expected --password-file, as nobody can be asked"),
        (["add", "alice", "--password-file", "-"], "\n", "expected a password, but it is empty"),
        (["add", "", "--password-file", "-"], SECRET, "Username must not be empty"),
        (["add", "alice", "--password-file", "-", "--iterations", "5"], SECRET, "4096<=x<=16384"),
        (["add", "alice", "--password-file", "-", "--mechanism", "PLAIN"], SECRET, "SCRAM-SHA-256"),
    ],
)
def test_mistakes(tmp_path: Path, arguments: list[str], told: str, said: str) -> None:
    done = kshim(tmp_path / "data", *arguments, told=told)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert SECRET not in done.stdout + done.stderr
