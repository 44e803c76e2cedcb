"""How commands find a running server, and ask it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from kshim.control.client import FILE_NAME, ControlError, ask

Command = Callable[..., None]


def of_running_server(command: Command) -> Command:
    """Give a command the options that name the server; it is called with `path`, its control socket."""

    @click.option(
        "--data-dir",
        metavar="DIR",
        default="./kshim-data",
        show_default=True,
        type=Path,
        help="The data directory of the running server.",
    )
    @click.option("--control", metavar="PATH", type=Path, help="The server's --control, if it has one.")
    @wraps(command)
    def with_path(data_dir: Path, control: Path | None, **others: Any) -> None:
        command(path=control or data_dir / FILE_NAME, **others)

    return with_path


def ask_server(path: Path, command: str, *arguments: object) -> Any:
    """Ask the server whose control socket is `path`. Raises ClickException."""
    try:
        return ask(path, command, *arguments)
    except ControlError as error:
        raise click.ClickException(str(error)) from error
