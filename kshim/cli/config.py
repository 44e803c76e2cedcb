"""`kshim config`: the properties, by section; or one of them, with all that is known about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from kshim.cli.lines import print_line
from kshim.cli.tables import print_table

if TYPE_CHECKING:
    from kshim.configs.config import Property

SECTIONS: Final = (
    ("Listeners and connections", ("listeners", "advertised", "listener.", "controller.listener")),
    ("Listeners and connections", ("connection", "max.connection", "socket.", "queued.", "control.path")),
    ("TLS", ("ssl.",)),
    ("SASL", ("sasl.", "connections.max.reauth", "connection.failed.authentication")),
    ("Access", ("authorizer.", "super.users", "allow.everyone")),
    ("Brokers and topics", ("brokers", "node.id", "auto.create", "num.partitions", "default.", "min.insync")),
    ("Records", ("log.", "message.", "compression.", "flush.", "fetch.", "max.decompressed")),
    ("Records", ("max.incremental",)),
    ("Groups", ("group.", "offset", "upstream.groups", "upstream.offsets")),
    ("Transactions and producers", ("transaction", "producer.", "add.partitions")),
    ("Quotas", ("quota.", "controller.quota")),
    ("HTTP", ("http.",)),
    ("Upstream", ("upstream.",)),
)
"""The sections, and how the names in them begin. The longest beginning that fits counts."""
REST: Final = "Others"


@click.command()
@click.argument("name", required=False)
def config(name: str | None) -> None:
    """List every property, its default and what it does; with NAME one property, or those that begin so.

    Set a property with `kshim serve --set KEY=VALUE`, or in the file of --config.

    \b
    Examples:
      kshim config
      kshim config group.initial.rebalance.delay.ms
      kshim config log.
    """
    from kshim.configs.config import PROPERTIES
    from kshim.configs.upstream import PROPERTIES as OF_UPSTREAM

    known = dict(sorted({**PROPERTIES, **OF_UPSTREAM}.items()))
    if name is None:
        _print_sections(known)
    elif name in known:
        _print_one(known[name])
    else:
        _print_sections({each: known[each] for each in _like(name, known)})


def section(name: str) -> str:
    """The section of a property."""
    fits = ((len(start), title) for title, starts in SECTIONS for start in starts if name.startswith(start))
    return max(fits, default=(0, REST))[1]


def _print_sections(properties: Mapping[str, Property]) -> None:
    found: dict[str, list[Sequence[str]]] = {title: [] for title, _ in SECTIONS}
    for each in properties.values():
        found.setdefault(section(each.name), []).append((each.name, _default(each), each.doc))
    is_first = True
    for title, rows in found.items():
        if rows:
            if not is_first:
                print_line()
            is_first = False
            print_line(title)
            print_table(("Property", "Default", "Meaning"), rows)


def _print_one(it: Property) -> None:
    print_line(it.name)
    print_line(f"  {it.doc}")
    print_line(f"  Default: {it.default or 'none'}")
    if it.kafka_default:
        print_line(f"  Default of Apache Kafka: {it.kafka_default}")
    print_line(f"  Section: {section(it.name)}")
    print_line(f"  Set it with: kshim serve --set {it.name}={it.default or '…'}")


def _default(it: Property) -> str:
    return it.default + (f" (Kafka: {it.kafka_default})" if it.kafka_default else "")


def _like(name: str, known: Mapping[str, Property]) -> list[str]:
    """The names that begin with `name`, or else those that contain it. Raises ClickException."""
    for found in (
        [each for each in known if each.startswith(name)],
        [each for each in known if name.lower() in each],
    ):
        if found:
            return found
    raise click.ClickException("; ".join(_unknown(name, known)))


def _unknown(name: str, known: Mapping[str, Property]) -> Iterator[str]:
    from kshim.configs.brokers import is_kafka_property
    from kshim.configs.reading import suggestion

    if is_kafka_property(name):
        yield f"{name} is a property of Apache Kafka without effect in kshim"
    else:
        yield f"{name}: no such property{suggestion(name, known)}"
    yield "`kshim config` lists them all"
