"""Runs of the command line in this process."""

import sys

import pytest

from kshim.cli import running
from kshim.cli.main import main
from kshim.configs.config import Config


class Run:
    """Runs `kshim` with some arguments; keeps in `config` what it would have served."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self.config: Config | None = None
        monkeypatch.setattr(running, "run", self._serve)
        monkeypatch.setattr("kshim.cli.logs.start", lambda level: None)

    def _serve(self, config: Config, *, end_with_stdin: bool) -> int:
        self.config, self.end_with_stdin = config, end_with_stdin
        return 0

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Returns the exit status, standard output and standard error."""
        self._monkeypatch.setattr(sys, "argv", ["kshim", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = self._capsys.readouterr()
        return caught.value.code or 0, out, err
