"""The command line: options become a Config, the Config becomes a server, the server runs in the reactor.

A fault of the user's is told in one line on standard error, and the exit status is 2.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import click

from kshim import __version__
from kshim.tables import print_table

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kshim.addresses import Endpoint
    from kshim.config import Config

EXIT_USAGE = 2
YOUNG_OBJECTS = 10_000
"""From how many on the garbage collector looks at them: requests under way are thousands that come and go."""
# A group of commands that was given none, which shows its help; an exception since click 8.2.
_ASKED_FOR_NOTHING = getattr(click.exceptions, "NoArgsIsHelpError", ())


class Commands(click.Group):
    """A group that imports a command's module when the command is asked for, so that `serve` starts
    quickly.
    """

    lazy: ClassVar = {
        "check": "kshim.check",
        "cluster": "kshim.cluster_command",
        "demo": "kshim.demo",
        "pipeline": "kshim.spark.command",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *self.lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(import_module(self.lazy[cmd_name]), cmd_name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="kshim", message="%(prog)s %(version)s")
def commands() -> None:
    """A Kafka-protocol server with its own group coordinator.

    \b
    Start one, and point any Kafka client at 127.0.0.1:9092:
        kshim serve
    """


@commands.command()
@click.option(
    "--listen",
    metavar="HOST:PORT",
    show_default="127.0.0.1:9092",
    help="Address to listen at. Port 0 picks a free one.",
)
@click.option(
    "--advertise",
    metavar="HOST:PORT",
    show_default="the one they connected to",
    help="Address told to clients.",
)
@click.option(
    "--brokers",
    metavar="N",
    show_default="1",
    help="How many brokers to play, on as many ports from that of --listen on.",
)
@click.option(
    "--data-dir",
    metavar="DIR",
    show_default="./kshim-data",
    help="Where everything is kept; :memory: keeps nothing.",
)
@click.option(
    "--control",
    metavar="PATH",
    show_default="control.sock in the data directory",
    help="Socket for `kshim cluster`.",
)
@click.option("--config", "file", metavar="FILE", type=Path, help="A server.properties file, as Kafka's.")
@click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set one property; may come several times."
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

    When connections are accepted, one line is printed: kshim ready HOST:PORT, with several brokers all their
    addresses, comma-separated, as clients take them. The log goes to standard error.
    `kshim config` lists the properties for --set and --config. Options win over --set, and --set over the
    file.

    \b
    Examples:
      kshim serve
      kshim serve --listen 127.0.0.1:0 --data-dir :memory:
      kshim serve --listen 0.0.0.0:9092 --advertise kafka.example.org:9092
      kshim serve --brokers 3
      kshim serve --set num.partitions=3 --set group.initial.rebalance.delay.ms=3000
    """
    from kshim import logs
    from kshim.config import ConfigError, new_config

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
        _fail(*error.problems)
    logs.start(log_level)
    for warning in warnings:
        logs.log.warning(warning)
    sys.exit(run(config))


def run(config: Config) -> int:
    """Run a server in the global reactor until SIGINT or SIGTERM comes; the exit status."""
    gc.disable()  # nearly all that a start makes stays
    from kshim.imports import import_reactor

    reactor: Any = import_reactor()
    from twisted.internet.error import ReactorNotRunning

    from kshim import logs
    from kshim.service import Server, StartError

    logs.take_in_twisted()
    server = Server(config, reactor)
    status = 0

    def start() -> None:
        reactor.addSystemEventTrigger("before", "shutdown", server.stop)
        server.start().addCallbacks(ready, failed)

    def ready(addresses: Sequence[Endpoint]) -> None:
        # What was imported stays for good: no collection needs to look at it again.
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS, 10, 10)
        gc.enable()
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

    # Not Twisted's own: at a second Ctrl-C they would log that the reactor is not running.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: reactor.callFromThread(stop))
    reactor.callWhenRunning(start)
    reactor.run(installSignalHandlers=False)
    return status


@commands.command()
def apis() -> None:
    """List the APIs that are served, and in which versions."""
    from kshim.dispatch import API, api_name

    rows = [
        (str(int(key)), api_name(key), f"{served.versions[0]} - {served.versions[-1]}")
        for key, served in sorted(API.items())
    ]
    print_table(("Key", "API", "Versions"), rows)


@commands.command()
def config() -> None:
    """List every property, its default and what it does.

    They are set with --set KEY=VALUE, or in the file that --config names.
    """
    from kshim.config import PROPERTIES

    rows = [
        (p.name, p.default + (f" (Kafka: {p.kafka_default})" if p.kafka_default else ""), p.doc)
        for p in PROPERTIES.values()
    ]
    print_table(("Property", "Default", "Meaning"), rows)


def _read_file(path: Path) -> dict[str, str]:
    from kshim.properties_file import parse_properties

    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        _fail(f"--config {path}: {error.strerror}")
    except UnicodeDecodeError as error:
        _fail(f"--config {path}: expected UTF-8 text, but byte {error.start} is not")


def _key_and_value(setting: str) -> tuple[str, str]:
    key, equals, value = setting.partition("=")
    if not equals or not key.strip():
        _fail(f"--set {setting}: expected KEY=VALUE, as in --set num.partitions=3")
    return key.strip(), value


def _fail(*problems: str) -> NoReturn:
    """Tell the user what is wrong, a line for each problem, and exit."""
    for problem in problems:
        click.echo(f"kshim: {problem}", err=True)
    sys.exit(EXIT_USAGE)


def main() -> NoReturn:
    """The `kshim` command."""
    try:
        sys.exit(commands.main(prog_name="kshim", standalone_mode=False))
    except click.ClickException as error:
        if isinstance(error, _ASKED_FOR_NOTHING):
            error.show()
            sys.exit(EXIT_USAGE)
        _fail(" ".join(error.format_message().split()))
    except click.Abort:
        sys.exit(130)
