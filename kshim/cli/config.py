"""`kshim config`: a table of the properties."""

from __future__ import annotations

import click

from kshim.cli.tables import print_table


@click.command()
def config() -> None:
    """List every property, its default and what it does.

    Set a property with `kshim serve --set KEY=VALUE`, or in the file of --config.
    """
    from kshim.configs.config import PROPERTIES
    from kshim.configs.upstream import PROPERTIES as OF_UPSTREAM

    rows = [
        (p.name, p.default + (f" (Kafka: {p.kafka_default})" if p.kafka_default else ""), p.doc)
        for p in (*PROPERTIES.values(), *OF_UPSTREAM.values())
    ]
    print_table(("Property", "Default", "Meaning"), rows)
