"""The standard streams, which the caller may have closed, and standard output, which may take no more."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Final

from kshim.cli.faults import fail

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

BROKEN_PIPE: Final = 141
"""The status with which a shell reports a program that SIGPIPE has ended."""
STREAMS: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
STDOUT: Final = 1


class _Output(io.FileIO):
    """Standard output. Ends the program when it takes no more: without a word if nobody reads it, else with
    one line.
    """

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            _drop_output()
            sys.exit(BROKEN_PIPE)
        except OSError as error:
            _drop_output()
            fail(f"cannot write to standard output: {error.strerror}")


def open_streams() -> None:
    """Open the standard streams that are closed, so that no other file gets what is printed, and make prints
    raise SystemExit when standard output takes no more.
    """
    for number, (name, mode) in enumerate(STREAMS):
        try:
            os.fstat(number)
        except OSError:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    if (given := sys.stdout) is sys.__stdout__ and isinstance(given, io.TextIOWrapper):
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Output(STDOUT, "w", closefd=False)),
            encoding=given.encoding,
            errors=given.errors,
            line_buffering=given.line_buffering,
        )


def _drop_output() -> None:
    # When Python ends, it writes the buffer once more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
