"""`kshim cluster`: shows, stops and starts a running server's brokers, and moves leaders and coordinators."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kshim.cli.asking import Server, ask_server, of_running_server
from kshim.cli.lines import print_line
from kshim.cli.tables import print_table

if TYPE_CHECKING:
    from kshim.control.brokers import (
        DescribedBroker,
        DescribedCluster,
        MovedLeader,
        StartedBroker,
        StoppedBroker,
    )


_NO_LEADER = -1


@click.group()
@of_running_server
@click.pass_context
def cluster(context: click.Context, server: Server) -> None:
    """Show and steer a running server's brokers.

    Clients see what they would see in a Kafka cluster: leaders and group coordinators move, and brokers
    shut down.

    \b
    Examples:
      kshim serve --brokers 3
      kshim cluster describe
      kshim cluster move-leader greetings 0 --to 2
      kshim cluster move-coordinator readers --to 3
      kshim cluster stop-broker 1
    """
    context.obj = server


_to = click.option("--to", "node_id", metavar="NODE", type=int, required=True, help="The broker's node id.")


@cluster.command()
@click.option("--internal", is_flag=True, help="Show internal topics as well.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@of_running_server
def describe(server: Server, internal: bool, as_json: bool) -> None:
    """Show the brokers, and the leader of each partition."""
    known: DescribedCluster = ask_server(server, "describe")
    known["partitions"] = [p for p in known["partitions"] if internal or not p["is_internal"]]
    if as_json:
        click.echo(json.dumps(known))
        return
    print_line(f"cluster {known['cluster_id']}, controller {known['controller_id']}")
    print_line()
    brokers = [(str(b["node_id"]), _addresses(b), b["state"], str(b["leads"])) for b in known["brokers"]]
    print_table(("Broker", "Address", "State", "Leads"), brokers)
    rows = [
        (
            p["topic"],
            str(p["partition"]),
            "none" if p["leader"] == _NO_LEADER else str(p["leader"]),
            str(p["leader_epoch"]),
            _nodes(p["replicas"]),
            _nodes(p["isr"]),
        )
        for p in known["partitions"]
    ]
    if rows:
        print_line()
        print_table(("Topic", "Partition", "Leader", "Epoch", "Replicas", "In sync"), rows)


@cluster.command()
@click.argument("topic")
@click.argument("partition", type=int)
@_to
@of_running_server
def move_leader(server: Server, topic: str, partition: int, node_id: int) -> None:
    """Make another broker the leader of PARTITION of TOPIC.

    If that broker has no replica, it replaces the current leader among the replicas.
    """
    print_moved(ask_server(server, "move-leader", topic, partition, node_id))


@cluster.command()
@click.argument("group")
@_to
@of_running_server
def move_coordinator(server: Server, group: str, node_id: int) -> None:
    """Make another broker the coordinator of GROUP.

    All other groups in the same partition of __consumer_offsets move with it.
    """
    print_moved(ask_server(server, "move-coordinator", group, node_id))


@cluster.command()
@click.argument("node_id", metavar="NODE", type=int)
@of_running_server
def stop_broker(server: Server, node_id: int) -> None:
    """Shut a broker down.

    Brokers in the ISR take over its partitions. Then the broker's connections are closed.
    """
    stopped: StoppedBroker = ask_server(server, "stop-broker", node_id)
    without = stopped["without_leader"]
    lost = f", {without} have no leader now, as no other broker has a replica" if without else ""
    print_line(f"broker {node_id} is stopped: other brokers lead {stopped['moved']} of its partitions{lost}")


@cluster.command()
@click.argument("node_id", metavar="NODE", type=int)
@of_running_server
def start_broker(server: Server, node_id: int) -> None:
    """Start a broker that was stopped.

    It leads the partitions that no other broker can lead. To make it the leader of its other partitions
    again, elect the preferred leaders with Kafka's tools, or use move-leader.
    """
    started: StartedBroker = ask_server(server, "start-broker", node_id)
    print_line(f"broker {node_id} runs: it leads {started['leads']} partitions")


@cluster.command()
@of_running_server
def drain(server: Server) -> None:
    """Hand the groups and clients of this kshim over to the others, before it ends.

    For a server with --upstream that shares the groups with others. It goes on to answer until it is stopped.
    SIGTERM does the same, and then ends the process.
    """
    is_taken, closed, left = ask_server(server, "drain")
    if not is_taken:
        raise click.ClickException("no other kshim is there to take over: nothing was handed over")
    still = f"; {left} are still open" if left else ""
    print_line(f"the other kshim have the groups, and {closed} connections were closed{still}")


def print_moved(moved: MovedLeader) -> None:
    """Print where a leader has moved."""
    partition = f"{moved['topic']}-{moved['partition']}"
    before = "no broker" if moved["from"] == _NO_LEADER else f"broker {moved['from']}"
    epoch = moved["leader_epoch"]
    print_line(f"{partition}: led by broker {moved['to']}, previously by {before}; epoch {epoch}")


def _addresses(broker: DescribedBroker) -> str:
    """A broker's address; if it has several listeners, the address of each."""
    listeners = broker["listeners"]
    if len(listeners) == 1:
        return broker["address"]
    return ", ".join(f"{name}://{address}" for name, address in listeners.items())


def _nodes(node_ids: Sequence[int]) -> str:
    return ",".join(map(str, node_ids)) or "none"
