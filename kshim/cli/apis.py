"""`kshim apis`: a table of the served APIs, or of the APIs that only Apache Kafka serves."""

from __future__ import annotations

import click

from kshim.cli.faults import fail
from kshim.cli.tables import print_table


@click.command()
@click.option(
    "--against",
    metavar="VERSION",
    help="List the APIs that Apache Kafka of that version (4.2 to 4.4) announces and kshim does not serve, "
    "and why.",
)
def apis(against: str | None) -> None:
    """List the APIs that kshim serves, and their versions."""
    if against is None:
        _print_served()
    else:
        _print_unserved(against)


def _print_served() -> None:
    from kshim.api.api_versions import ANNOUNCED, REFUSED

    rows = [
        (str(int(key)), key.title, _text(versions))
        for key, versions in sorted(ANNOUNCED.items())
        if key not in REFUSED
    ]
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
