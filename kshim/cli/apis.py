"""`kshim apis`: a table of the served APIs."""

from __future__ import annotations

import click

from kshim.cli.tables import print_table


@click.command()
def apis() -> None:
    """List the APIs that kshim serves, and their versions."""
    from kshim.network.dispatch import API, api_name

    rows = [
        (str(int(key)), api_name(key), f"{served.versions[0]} - {served.versions[-1]}")
        for key, served in sorted(API.items())
    ]
    print_table(("Key", "API", "Versions"), rows)
