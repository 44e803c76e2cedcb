"""The command line's refusals: one line, and exit status 2."""

from __future__ import annotations

import subprocess


def assert_refused(result: subprocess.CompletedProcess[str], *said: str) -> None:
    """Exit status 2, nothing on stdout, one line on stderr that contains all of `said`."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("kshim: ")
    for words in said:
        assert words in line, line
