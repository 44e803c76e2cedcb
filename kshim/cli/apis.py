"""`kshim apis`: a table of the served APIs, or of the APIs that only Apache Kafka serves."""

from __future__ import annotations

import click

from kshim.cli.addressed import Address, address_options, opened
from kshim.cli.faults import fail
from kshim.cli.tables import print_table


@click.command()
@click.option(
    "--against",
    metavar="VERSION",
    help="List the APIs that Apache Kafka of that version (4.2 to 4.4) announces and kshim does not serve, "
    "and why.",
)
@address_options
def apis(address: Address, against: str | None) -> None:
    """List the APIs that kshim serves, or the server at an address, and their versions.

    \b
    Examples:
      kshim apis
      kshim apis -b kafka1:9092
      kshim apis --against 4.4
    """
    if against is not None:
        _print_unserved(against)
    elif address.bootstrap is not None:
        _print_of_server(address)
    else:
        _print_served()


def _print_served() -> None:
    from kshim.api.api_versions import ANNOUNCED, REFUSED

    rows = [
        (str(int(key)), key.title, _text(versions))
        for key, versions in sorted(ANNOUNCED.items())
        if key not in REFUSED
    ]
    print_table(("Key", "API", "Versions"), rows)


def _print_of_server(address: Address) -> None:
    from schemas.api_key import api_title

    with opened(address) as cluster:
        versions = cluster.any().versions
    rows = [(str(key), api_title(key), _text(some)) for key, some in sorted(versions.items())]
    print_table(("Key", "API", "Versions"), rows)


def _print_unserved(version: str) -> None:
    from kshim.cli.unserved import TELEMETRY, UNSERVED

    if version not in UNSERVED:
        fail(f"--against {version}: expected a version of Apache Kafka that is known: {', '.join(UNSERVED)}")
    rows = [
        (str(int(key)), key.title, _text(versions), why) for key, (versions, why) in UNSERVED[version].items()
    ]
    print_table(("Key", "API", "Versions", "Why it is not served"), rows)
    telemetry = " and ".join(f"{key.title} ({key:d})" for key in TELEMETRY)
    click.echo(
        f"\n{telemetry} are announced by neither: Apache Kafka does so only with a plug-in for the\n"
        "metrics of clients (KIP-714), and kshim has none."
    )


def _text(versions: range) -> str:
    return f"{versions[0]} - {versions[-1]}"
