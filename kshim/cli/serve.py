"""`kshim serve`: makes properties from a file, settings and options, and runs a server with them."""

from __future__ import annotations

from pathlib import Path

import click

from kshim.cli.faults import fail
from kshim.cli.running import run_with


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
    show_default="the address that each client used",
    help="Address to which clients connect.",
)
@click.option(
    "--brokers",
    metavar="N",
    show_default="1",
    help="Number of brokers. Each has its own port, counted up from the port of --listen.",
)
@click.option(
    "--upstream",
    metavar="HOST:PORT,...",
    show_default="none",
    help="A Kafka cluster to stand in front of. Records stay there, and kshim coordinates the groups.",
)
@click.option(
    "--upstream-config",
    metavar="FILE",
    type=Path,
    help="Settings of the connection to the upstream: a client.properties file, as for Kafka's tools.",
)
@click.option(
    "--data-dir",
    metavar="DIR",
    show_default="./kshim-data",
    help="Directory for all data. :memory: keeps nothing on disk.",
)
@click.option(
    "--control",
    metavar="PATH",
    show_default="control.sock in the data directory",
    help="Socket through which commands such as `kshim cluster` reach the server.",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    show_default="off",
    help="Address of the web page, its JSON and the metrics. Port 0 picks a free one.",
)
@click.option("--config", "file", metavar="FILE", type=Path, help="A server.properties file, as for Kafka.")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set one property; may be given several times.",
)
@click.option(
    "--end-with-stdin",
    is_flag=True,
    help="End when standard input ends, so that the server does not outlive its parent process.",
)
@click.option(
    "--log-level",
    default="info",
    show_default=True,
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="Lowest level of messages in the log. debug shows every request.",
)
def serve(
    listen: str | None,
    advertise: str | None,
    brokers: str | None,
    upstream: str | None,
    upstream_config: Path | None,
    data_dir: str | None,
    control: str | None,
    http: str | None,
    file: Path | None,
    settings: tuple[str, ...],
    end_with_stdin: bool,
    log_level: str,
) -> None:
    """Serve Kafka clients until SIGINT or SIGTERM.

    Prints one line as soon as clients can connect: kshim ready HOST:PORT. With several brokers the line has
    all their addresses, comma-separated, as clients take them. With several listeners it has the addresses
    of the first listener, and a line kshim listener NAME HOST:PORT follows for each listener. The log goes
    to standard error. `kshim config` lists the properties for --set and --config. Options override --set,
    and --set overrides the files.

    \b
    Examples:
      kshim serve
      kshim serve --listen 127.0.0.1:0 --data-dir :memory:
      kshim serve --listen 0.0.0.0:9092 --advertise kafka.example.org:9092
      kshim serve --brokers 3
      kshim serve --config certs/server.properties   (after kshim certificates certs)
      kshim serve --listen 127.0.0.1:19092 --upstream kafka1:9092,kafka2:9092
      kshim serve --upstream kafka1:9093 --upstream-config client.properties
      kshim serve --http 127.0.0.1:8080
      kshim serve --set num.partitions=3 --set group.initial.rebalance.delay.ms=3000
    """
    properties = _read_file("--config", file) if file else {}
    warnings: list[str] = []
    if upstream_config:
        of_upstream, warnings = _of_client(upstream_config)
        properties |= of_upstream | {"upstream.config.file": str(upstream_config.absolute())}
    properties |= dict(map(_key_and_value, settings))
    options = {
        "--listen": listen,
        "--advertise": advertise,
        "--brokers": brokers,
        "--upstream": upstream,
        "--data-dir": data_dir,
        "--control": control,
        "--http": http,
    }
    properties |= {key: value for key, value in options.items() if value is not None}
    run_with(properties, log_level, end_with_stdin=end_with_stdin, warnings=warnings)


def _of_client(path: Path) -> tuple[dict[str, str], list[str]]:
    """Return the properties of a client.properties file, and a list of at most one warning."""
    from kshim.configs.upstream import of_client

    properties, others = of_client(_read_file("--upstream-config", path))
    return properties, [f"{path}: without effect here: {', '.join(others)}"] if others else []


def _read_file(option: str, path: Path) -> dict[str, str]:
    from kshim.configs.properties_file import parse_properties

    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"{option} {path}: {error.strerror}")
    except UnicodeDecodeError as error:
        fail(f"{option} {path}: expected UTF-8 text, but byte {error.start} is not")


def _key_and_value(setting: str) -> tuple[str, str]:
    key, equals, value = setting.partition("=")
    if not equals or not key.strip():
        fail(f"--set {setting}: expected KEY=VALUE, as in --set num.partitions=3")
    return key.strip(), value
