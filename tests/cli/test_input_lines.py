"""Lines of a pipe, as they come."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kshim.cli import input_lines as module
from kshim.cli.input_lines import LineTooLong, input_lines


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def lines_of(pipe: tuple[int, int], data: bytes) -> list[bytes | None]:
    os.write(pipe[1], data)
    os.close(pipe[1])
    return [line for line in input_lines(pipe[0]) if line is not None]


@pytest.mark.parametrize("chunk", [1, 2, 7, 1000])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_lines_are_the_same_however_they_are_cut(
    pipe: tuple[int, int], chunk: int, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_BYTES", chunk)
    lines = [b"hello", b"", b"\xff\x00", b"carriage\r", b"x" * 50]
    assert lines_of(pipe, b"\n".join(lines) + end) == lines


def test_no_input_is_no_line(pipe: tuple[int, int]) -> None:
    assert lines_of(pipe, b"") == []


def test_a_pause_is_told_once_so_that_lines_are_not_kept_waiting(pipe: tuple[int, int]) -> None:
    found = input_lines(pipe[0])
    os.write(pipe[1], b"a\nb\nbegun")
    assert [next(found) for _ in range(3)] == [b"a", b"b", None]
    os.write(pipe[1], b" line\n")
    assert [next(found) for _ in range(2)] == [b"begun line", None]
    os.close(pipe[1])
    assert list(found) == []


def test_a_line_that_never_ends_does_not_fill_the_memory(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_LINE_BYTES", 100)
    with pytest.raises(LineTooLong, match="line 2 has more than 100 bytes"):
        lines_of(pipe, b"a\n" + b"x" * 101)
