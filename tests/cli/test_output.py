"""Standard streams that are closed, full, or not read: a program's caller sees no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kshim.cli.output import BROKEN_PIPE

COMMANDS = [["--help"], ["config"], ["apis"]]


def run(*arguments: str, stdout: int) -> tuple[int, bytes]:
    """The exit status, and what is said on standard error."""
    command = [sys.executable, "-m", "kshim", *arguments]
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stderr


@contextmanager
def opened(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_full_disk_is_one_line(arguments: list[str]) -> None:
    with opened("/dev/full") as full:
        said = b"kshim: cannot write to standard output: No space left on device\n"
        assert run(*arguments, stdout=full) == (2, said)


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_reader_that_has_gone_ends_the_program_without_a_word(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert run(*arguments, stdout=writing) == (BROKEN_PIPE, b"")
    finally:
        os.close(writing)


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_no_file_takes_the_place_of_a_closed_stream(closed: tuple[int, ...], tmp_path: Path) -> None:
    """Else the file would get what kshim prints."""
    program = f"""
import os, sys
for each in {closed}:
    os.close(each)
sys.stdin = sys.stdout = sys.stderr = None
from kshim.cli.output import open_streams
open_streams()
file = open({str(tmp_path / "data")!r}, "w")
print("printed", flush=True)
os.write(2, b"warned")
assert file.fileno() > 2
file.close()
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert (tmp_path / "data").read_bytes() == b""
