"""Options with which commands find a cluster by its address: of kshim, or of any other Kafka server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

if TYPE_CHECKING:
    from kshim.client.cluster import Cluster

Command = Callable[..., None]

BOOTSTRAP_ENV: Final = "KSHIM_BOOTSTRAP"
CONFIG_ENV: Final = "KSHIM_CLIENT_CONFIG"
DEFAULT: Final = "127.0.0.1:9092"


class Address(NamedTuple):
    """The options that name a cluster, as the user gave them."""

    bootstrap: str | None
    file: Path | None
    settings: tuple[str, ...]

    def properties(self) -> Mapping[str, str]:
        """The properties of the client. Raises ClickException."""
        properties = _read(self.file) if self.file else {}
        for setting in self.settings:
            key, equals, text = setting.partition("=")
            if not equals or not key.strip():
                raise click.UsageError(f"-X {setting}: expected KEY=VALUE, as in -X security.protocol=SSL")
            properties[key.strip()] = text
        return properties


def address_options(command: Command) -> Command:
    """Give a command the options that name a cluster. It is called with `address`, an Address."""

    @click.option(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT",
        envvar=BOOTSTRAP_ENV,
        help=f"Address of a broker; several are separated by commas. Or {BOOTSTRAP_ENV} in the environment.",
    )
    @click.option(
        "--client-config",
        metavar="FILE",
        envvar=CONFIG_ENV,
        type=Path,
        help="TLS and login: a client.properties file, as for Kafka's tools. "
        f"Or {CONFIG_ENV} in the environment.",
    )
    @click.option(
        "-X",
        "client_properties",
        metavar="KEY=VALUE",
        multiple=True,
        help="Set one property of the client, as in a client.properties file; may be given several times.",
    )
    @wraps(command)
    def with_address(
        bootstrap: str | None,
        client_config: Path | None,
        client_properties: tuple[str, ...],
        **others: object,
    ) -> None:
        command(address=Address(bootstrap, client_config, client_properties), **others)

    return with_address


def of_cluster(command: Command) -> Command:
    """Give a command the options that name a cluster. It is called with `cluster`, which it must not close.
    The errors of the cluster become one line.
    """

    @address_options
    @wraps(command)
    def with_cluster(address: Address, **others: object) -> None:
        with opened(address) as cluster:
            command(cluster=cluster, **others)

    return with_cluster


@contextmanager
def opened(address: Address) -> Iterator[Cluster]:
    """Yield the cluster for the time of the `with` block. Turns ClientError into ClickException."""
    from kshim.client.cluster import Cluster
    from kshim.client.faults import ClientError, Unreachable
    from kshim.client.settings import client_settings
    from kshim.configs.upstream import BOOTSTRAP

    properties = address.properties()
    given = address.bootstrap or properties.get(BOOTSTRAP)
    try:
        with Cluster(client_settings(given or DEFAULT, properties)) as cluster:
            yield cluster
    except Unreachable as error:
        hint = "" if given else f"; name a broker with -b HOST:PORT or {BOOTSTRAP_ENV}"
        raise click.ClickException(f"{error}{hint}") from error
    except ClientError as error:
        raise click.ClickException(str(error)) from error


def _read(path: Path) -> dict[str, str]:
    from kshim.configs.properties_file import parse_properties

    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.ClickException(f"--client-config {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        why = f"expected UTF-8 text, but byte {error.start} is not"
        raise click.ClickException(f"--client-config {path}: {why}") from None
