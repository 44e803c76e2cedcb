"""Options with which commands find a running server, and a function that asks it.

A server is found by its control socket, on its own machine, or by its address from anywhere. By its address
it is asked over Kafka's protocol where that can carry the command out, on kshim as on any other cluster; else
over kshim's HTTP interface.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.core import ParameterSource

from kshim.cli.addressed import BOOTSTRAP_ENV, Address, address_options, opened
from kshim.control.client import FILE_NAME, ControlError, NoServer, ask

Command = Callable[..., None]

HTTP_ENV: Final = "KSHIM_HTTP"
TOKEN_ENV: Final = "KSHIM_HTTP_TOKEN"
_FAR: Final = ("bootstrap", "http")
_NEAR: Final = ("data_dir", "control")
_ALL: Final = (*_FAR, *_NEAR, "client_config", "client_properties", "http_token")
RICHER_OVER_HTTP: Final = frozenset(("describe", "groups"))
"""Commands that Kafka's protocol carries out only in part."""


class OnlyKshim(click.ClickException):
    """The server that was asked is not kshim, or its HTTP interface is not known."""


class ByAddress(NamedTuple):
    """A server that is found by its address."""

    address: Address
    http: str | None
    """The address of its HTTP interface, if the user names it."""
    token: str

    def ask(self, command: str, *arguments: object) -> Any:
        """Run a command, and return its JSON value. Raises ClickException."""
        from kshim.cli.by_kafka import BY_KAFKA
        from kshim.client.http_commands import NoHttp

        by_kafka = BY_KAFKA.get(command) if self.address.bootstrap or not self.http else None
        with opened(self.address) as cluster:
            if by_kafka is not None and command not in RICHER_OVER_HTTP:
                return by_kafka(cluster, *arguments)
            try:
                return self._over_http(cluster, command, arguments)
            except NoHttp as error:
                if by_kafka is not None:
                    return by_kafka(cluster, *arguments)
                hint = f"name its HTTP interface with --http or {HTTP_ENV}"
                raise OnlyKshim(f"only kshim can do this, over HTTP: {error}; {hint}") from None

    def _over_http(self, cluster: Any, command: str, arguments: tuple[object, ...]) -> Any:
        from kshim.client.http_commands import find_http, run_over_http
        from kshim.client.settings import endpoints

        endpoint = endpoints(self.http)[0] if self.http else find_http(cluster)
        return run_over_http(endpoint, self.token, command, arguments)


class ByControlSocket(NamedTuple):
    """A server that is found by its control socket."""

    path: Path

    def ask(self, command: str, *arguments: object) -> Any:
        """Run a command, and return its JSON value. Raises ClickException."""
        try:
            return ask(self.path, command, *arguments)
        except NoServer as error:
            hint = f"; or its address with -b or {BOOTSTRAP_ENV}"
            raise click.ClickException(f"{error}{hint}") from error
        except ControlError as error:
            raise click.ClickException(str(error)) from error


Server = ByAddress | ByControlSocket


def of_server(
    parameter: str, made: Callable[[Path, Path | None], object], data_dir_help: str
) -> Callable[[Command], Command]:
    """Return a decorator that gives a command the options that name a server.

    The command is called with the argument `parameter`: a ByAddress if the user gives an address, and else
    what `made` returns for the data directory and the path of the control socket, which is None if the user
    gives none. An option counts for more than the environment. A command of a group that has these options,
    too, takes the group's unless it has its own.
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
        @address_options
        @click.option(
            "--http",
            metavar="HOST:PORT",
            envvar=HTTP_ENV,
            help="Address of kshim's HTTP interface. Default: the one that kshim announces. "
            f"Or {HTTP_ENV} in the environment.",
        )
        @click.option(
            "--http-token",
            metavar="TOKEN",
            envvar=TOKEN_ENV,
            default="",
            help=f"The token of the HTTP interface. Better {TOKEN_ENV} in the environment.",
        )
        @wraps(command)
        def with_server(
            data_dir: Path,
            control: Path | None,
            address: Address,
            http: str | None,
            http_token: str,
            **others: object,
        ) -> None:
            context = click.get_current_context()
            server: object = context.obj
            if server is None or _names_server(context, ParameterSource.COMMANDLINE):
                is_far = _is_by_address(context)
                server = ByAddress(address, http, http_token) if is_far else made(data_dir, control)
            command(**{parameter: server}, **others)

        return with_server

    return decorate


def _names_server(context: click.Context, source: ParameterSource, names: Sequence[str] = _ALL) -> bool:
    """True if one of the options that name a server comes from this source."""
    return any(context.get_parameter_source(name) is source for name in names)


def _is_by_address(context: click.Context) -> bool:
    """True if the user names an address, and not, more closely, a data directory or a control socket."""
    if _names_server(context, ParameterSource.COMMANDLINE, _FAR):
        return True
    if _names_server(context, ParameterSource.COMMANDLINE, _NEAR):
        return False
    return _names_server(context, ParameterSource.ENVIRONMENT, _FAR)


def control_socket(data_dir: Path, control: Path | None) -> ByControlSocket:
    return ByControlSocket(control or data_dir / FILE_NAME)


of_running_server = of_server(
    "server", control_socket, "The data directory of a running server on this machine."
)
"""Gives a command the options that name a server. The command is called with `server`, a Server."""


def ask_server(server: Server, command: str, *arguments: object) -> Any:
    """Ask a server, and return its answer. Raises ClickException."""
    return server.ask(command, *arguments)
