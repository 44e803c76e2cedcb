"""Options with which commands find a running server, and a function that asks it."""

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
    """Return a decorator that gives a command the options that name a server.

    The command is called with the argument `parameter`: what `made` returns for the data directory and the
    path of the control socket, which is None if the user gives none.
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
        def with_server(data_dir: Path, control: Path | None, **others: object) -> None:
            command(**{parameter: made(data_dir, control)}, **others)

        return with_server

    return decorate


def _control_socket(data_dir: Path, control: Path | None) -> Path:
    return control or data_dir / FILE_NAME


of_running_server = of_server("path", _control_socket, "The data directory of the running server.")
"""Gives a command the options that name a server. The command is called with `path`, the control socket."""


def ask_server(path: Path, command: str, *arguments: object) -> Any:
    """Ask the server whose control socket is `path`, and return its answer. Raises ClickException."""
    try:
        return ask(path, command, *arguments)
    except ControlError as error:
        raise click.ClickException(str(error)) from error
