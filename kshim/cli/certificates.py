"""`kshim certificates`: makes certificates of an authority, a server and clients, for tests."""

from __future__ import annotations

from pathlib import Path

import click

from kshim.cli.faults import fail


@click.command()
@click.argument("directory", metavar="DIR", type=Path)
@click.option(
    "--host",
    "hosts",
    metavar="NAME",
    multiple=True,
    show_default="localhost, 127.0.0.1, ::1",
    help="Name or address at which clients reach the server; may be given several times.",
)
@click.option(
    "--client",
    "clients",
    metavar="NAME",
    multiple=True,
    show_default="client",
    help="A client's name, such as alice or CN=alice,OU=Sales; may be given several times.",
)
@click.option(
    "--days",
    default=365,
    show_default=True,
    type=click.IntRange(1, 36500),
    help="Number of days for which the certificates are valid.",
)
def certificates(directory: Path, hosts: tuple[str, ...], clients: tuple[str, ...], days: int) -> None:
    """Make certificates for tests in DIR, and properties files for servers and clients.

    No file is overwritten. The authority's key is not kept, so it cannot issue further certificates.

    \b
    Examples:
      kshim certificates certs
      kshim certificates certs --host kafka.example.org --client alice --client CN=bob,OU=Sales
    """
    from kshim.certificates.directory import CLIENT, HOSTS, CannotMake, address, make

    try:
        made = make(directory, hosts=hosts or HOSTS, clients=clients or (CLIENT,), days=days)
    except ValueError as error:
        fail(f"--client {error}")
    except CannotMake as error:
        fail(str(error))
    client = made.clients[0]
    at = address(hosts or HOSTS)
    tool = f"kafka-console-producer.sh --bootstrap-server {at} --topic greetings --producer.config"
    python = ", ".join(f"{name}={value!r}" for name, value in client.kafka_python.items())
    names = _listed([each.name for each in made.clients])
    click.echo(f"""\
{directory} has a certificate for {", ".join(hosts or HOSTS)}, and for {names}.

Start the server, also with ssl.client.auth=required:
  kshim serve --config {directory}/server.properties

Connect to {at}:
  Java         {tool} {client.file("properties")}
  librdkafka   kcat -b {at} -L -F {client.file("librdkafka")}
  kafka-python KafkaProducer(bootstrap_servers={at!r}, {python})""")


def _listed(names: list[str]) -> str:
    return f"the clients {', '.join(names)}" if len(names) > 1 else f"the client {names[0]}"
