"""Standard output for bytes, which may be a pipe that its reader closes at any time."""

from __future__ import annotations

import os
import sys
from typing import Final

BROKEN_PIPE: Final = 141
"""The status with which a shell reports a program that SIGPIPE has ended."""


class Output:
    """Buffered. Ends the program, without a word, when nobody reads any more."""

    def write(self, data: bytes) -> None:
        """Write some bytes. Raises SystemExit."""
        try:
            sys.stdout.buffer.write(data)
        except BrokenPipeError:
            _end()

    def flush(self) -> None:
        """Pass on all that was written. Raises SystemExit."""
        try:
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            _end()


def _end() -> None:
    # Python would flush the pipe once more at its end, and complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(BROKEN_PIPE)
