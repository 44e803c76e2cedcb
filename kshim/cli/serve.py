"""`kshim serve`: options become a Config, the Config becomes a server, the server runs in the reactor."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kshim.cli.faults import EXIT_USAGE, fail

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kshim.configs.config import Config
    from kshim.configs.endpoint import Endpoint


@click.command()
@click.option(
    "--listen",
    metavar="HOST:PORT",
    show_default="127.0.0.1:9092",
    help="Address to listen on. Port 0 picks a free one.",
)
@click.option(
    "--advertise",
    metavar="HOST:PORT",
    show_default="the one the client connected to",
    help="Address that clients are told to connect to.",
)
@click.option(
    "--brokers",
    metavar="N",
    show_default="1",
    help="Number of brokers; each has a port, counted up from that of --listen.",
)
@click.option(
    "--data-dir",
    metavar="DIR",
    show_default="./kshim-data",
    help="Directory for all data; :memory: keeps nothing.",
)
@click.option(
    "--control",
    metavar="PATH",
    show_default="control.sock in the data directory",
    help="Socket for `kshim cluster`.",
)
@click.option(
    "--config", "file", metavar="FILE", type=Path, help="A server.properties file, as Kafka reads it."
)
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set one property; may be given several times.",
)
@click.option(
    "--log-level", default="info", show_default=True, type=click.Choice(["debug", "info", "warning", "error"])
)
def serve(
    listen: str | None,
    advertise: str | None,
    brokers: str | None,
    data_dir: str | None,
    control: str | None,
    file: Path | None,
    settings: tuple[str, ...],
    log_level: str,
) -> None:
    """Serve Kafka clients until SIGINT or SIGTERM.

    Prints one line as soon as clients can connect: kshim ready HOST:PORT, with several brokers all their
    addresses, comma-separated, as clients take them. The log goes to standard error.
    `kshim config` lists the properties for --set and --config. Options override --set, and --set the file.

    \b
    Examples:
      kshim serve
      kshim serve --listen 127.0.0.1:0 --data-dir :memory:
      kshim serve --listen 0.0.0.0:9092 --advertise kafka.example.org:9092
      kshim serve --brokers 3
      kshim serve --set num.partitions=3 --set group.initial.rebalance.delay.ms=3000
    """
    from kshim.cli import logs
    from kshim.configs.config import ConfigError, new_config

    properties = _read_file(file) if file else {}
    properties |= dict(map(_key_and_value, settings))
    options = {
        "--listen": listen,
        "--advertise": advertise,
        "--brokers": brokers,
        "--data-dir": data_dir,
        "--control": control,
    }
    properties |= {key: value for key, value in options.items() if value is not None}
    try:
        config, warnings = new_config(properties)
    except ConfigError as error:
        fail(*error.problems)
    logs.start(log_level)
    for warning in warnings:
        logs.logger.warning(warning)
    sys.exit(run(config))


def run(config: Config) -> int:
    """Run a server in the global reactor until SIGINT or SIGTERM. Returns the exit status."""
    from kshim.cli import collector

    collector.defer()
    from kshim.cli.reactor import import_reactor

    reactor: Any = import_reactor()
    from twisted.internet.error import ReactorNotRunning

    from kshim.cli import logs
    from kshim.service import Server, StartError

    logs.take_in_twisted()
    _take_all_descriptors()
    server = Server(config, reactor)
    status = 0

    def start() -> None:
        reactor.addSystemEventTrigger("before", "shutdown", server.stop)
        server.start().addCallbacks(ready, failed)

    def ready(addresses: Sequence[Endpoint]) -> None:
        collector.begin()
        print(f"kshim ready {','.join(map(str, addresses))}", flush=True)

    def failed(failure: Failure) -> None:
        nonlocal status
        foreseen = isinstance(failure.value, StartError)
        status = EXIT_USAGE if foreseen else 1
        click.echo(f"kshim: {failure.getErrorMessage() if foreseen else failure.getTraceback()}", err=True)
        stop()

    def stop() -> None:
        with suppress(ReactorNotRunning):
            reactor.stop()

    # Twisted's own handlers would log, at a second Ctrl-C, that the reactor is not running.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: reactor.callFromThread(stop))
    reactor.callWhenRunning(start)
    reactor.run(installSignalHandlers=False)
    return status


def _take_all_descriptors() -> None:
    """Let there be as many connections as the user may have files, as the JVM does: often 1,024 are given,
    but many more are allowed.
    """
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS allows less than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _read_file(path: Path) -> dict[str, str]:
    from kshim.configs.properties_file import parse_properties

    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"--config {path}: {error.strerror}")
    except UnicodeDecodeError as error:
        fail(f"--config {path}: expected UTF-8 text, but byte {error.start} is not")


def _key_and_value(setting: str) -> tuple[str, str]:
    key, equals, value = setting.partition("=")
    if not equals or not key.strip():
        fail(f"--set {setting}: expected KEY=VALUE, as in --set num.partitions=3")
    return key.strip(), value
