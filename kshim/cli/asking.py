"""How commands find a running server, and ask it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from kshim.control.client import FILE_NAME, ControlError, ask

Command = Callable[..., None]


def of_server(
    parameter: str, made: Callable[[Path, Path | None], object], data_dir_help: str
) -> Callable[[Command], Command]:
    """Gives a command the options that name a server; it is called with `parameter`, made of the data
    directory and the control socket, if that is named.
    """

    def decorate(command: Command) -> Command:
        @click.option(
            "--data-dir",
            metavar="DIR",
            default="./kshim-data",
            show_default=True,
            type=Path,
            help=data_dir_help,
        )
        @click.option("--control", metavar="PATH", type=Path, help="The server's --control, if it has one.")
        @wraps(command)
        def with_server(data_dir: Path, control: Path | None, **others: Any) -> None:
            command(**{parameter: made(data_dir, control)}, **others)

        return with_server

    return decorate


def _control_socket(data_dir: Path, control: Path | None) -> Path:
    return control or data_dir / FILE_NAME


of_running_server = of_server("path", _control_socket, "The data directory of the running server.")
"""Gives a command the options that name the server; it is called with `path`, its control socket."""


def ask_server(path: Path, command: str, *arguments: object) -> Any:
    """Ask the server whose control socket is `path`. Raises ClickException."""
    try:
        return ask(path, command, *arguments)
    except ControlError as error:
        raise click.ClickException(str(error)) from error
