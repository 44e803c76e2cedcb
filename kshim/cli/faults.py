"""Reports mistakes of the user: one line for each on standard error, and exit status 2."""

from __future__ import annotations

import sys
from typing import Final, NoReturn

from kshim.recorder.one_line import on_one_line

EXIT_USAGE: Final = 2


def fail(*problems: str, command: str = "kshim") -> NoReturn:
    """Print one line for each problem on standard error, and exit with status 2."""
    for problem in problems:
        print(f"{command}: {on_one_line(problem)}", file=sys.stderr)
    sys.exit(EXIT_USAGE)
