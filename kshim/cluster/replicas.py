"""One partition's replicas, and which of them leads: the rules of Kafka's controller, as values.

All brokers of this process share one log, so a replica is in sync as soon as its broker runs. What is left
are the rules that clients see: who is in the ISR, who is elected, when the leader epoch grows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import Enum

from kshim.cluster.topics import NO_LEADER, Partition


class Election(Enum):
    """Who may become the leader, and for whom a leader steps down."""

    ONLINE = "whoever leads stays; else the first replica that is in sync"
    PREFERRED = "the first replica, if it is in sync"
    UNCLEAN = "whoever leads stays; else any replica that runs"


def placed(start: int, count: int, replication_factor: int, nodes: Sequence[int]) -> list[tuple[int, ...]]:
    """The replicas of `count` partitions, round robin; `nodes[start]`, wrapped around, is the first's leader.

    replication_factor: at most as many as there are nodes.
    """
    size = len(nodes)
    return [
        tuple(nodes[(start + n + replica) % size] for replica in range(replication_factor))
        for n in range(count)
    ]


def stopped(partition: Partition, node_id: int, running: Collection[int], min_isr: int) -> Partition:
    """`partition` when broker `node_id` has stopped; `running` is without it."""
    if node_id not in partition.replicas:
        return partition
    isr = tuple(replica for replica in partition.isr if replica != node_id)
    return changed(partition, replace(partition, isr=isr), running, min_isr)


def started(partition: Partition, node_id: int, running: Collection[int], min_isr: int) -> Partition:
    """`partition` when broker `node_id` is back; `running` has it. It leads only where nobody else may."""
    if node_id not in partition.replicas:
        return partition
    if partition.leader == NO_LEADER:
        partition = changed(partition, partition, running, min_isr)
    if partition.leader == NO_LEADER or node_id in partition.isr:
        return partition
    return changed(partition, replace(partition, isr=(*partition.isr, node_id)), running, min_isr)


def elected(partition: Partition, election: Election, running: Collection[int], min_isr: int) -> Partition:
    """`partition` after an election; itself where there is nobody to elect."""
    return changed(partition, partition, running, min_isr, election)


def led_by(partition: Partition, node_id: int, running: Collection[int], min_isr: int) -> Partition:
    """`partition` with the running broker `node_id` as its leader.

    One that is no replica takes the leader's place among the replicas, as a reassignment would have it.
    """
    replicas = partition.replicas
    if node_id not in replicas:
        given_up = partition.leader if partition.leader in replicas else replicas[0]
        target = tuple(node_id if replica == given_up else replica for replica in replicas)
        partition = reassigned(partition, target, running, min_isr)
    if partition.leader == node_id:
        return partition
    isr = partition.isr if node_id in partition.isr else (*partition.isr, node_id)
    led = replace(partition, isr=isr, leader=node_id, leader_epoch=partition.leader_epoch + 1)
    return _with_elr(partition, led, min_isr)


def reassigned(
    partition: Partition, target: Sequence[int], running: Collection[int], min_isr: int
) -> Partition:
    """`partition` on its way to the replicas `target`; there already if all of them run (KIP-455)."""
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    wanted = replace(partition, replicas=(*target, *removing), adding=adding, removing=removing)
    wanted = changed(partition, wanted, running, min_isr)
    for node_id in adding:
        if node_id in running:
            wanted = started(wanted, node_id, running, min_isr)
    return wanted


def cancelled(partition: Partition, running: Collection[int], min_isr: int) -> Partition:
    """`partition` with the replicas it had before its reassignment."""
    kept = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    isr = tuple(replica for replica in partition.isr if replica in kept)
    wanted = replace(partition, replicas=kept, isr=isr, adding=(), removing=())
    return changed(partition, wanted, running, min_isr)


def fitted(partition: Partition, node_ids: Sequence[int]) -> Partition:
    """`partition` at the start of a server that plays `node_ids`: all of them run, and are in sync.

    Replicas on brokers that are no more are given up, for the records are here all the same; who leads stays.
    """
    target = [node for node in partition.replicas if node not in partition.removing]
    kept = [node for node in target if node in node_ids] or [
        node for node in partition.replicas if node in node_ids
    ]
    replicas = tuple(kept or (node_ids[partition.partition_no % len(node_ids)],))
    isr = tuple(dict.fromkeys([*(node for node in partition.isr if node in replicas), *replicas]))
    wanted = replace(partition, replicas=replicas, isr=isr, elr=(), adding=(), removing=())
    return changed(partition, wanted, node_ids, 1)


def changed(
    before: Partition,
    wanted: Partition,
    running: Collection[int],
    min_isr: int,
    election: Election = Election.ONLINE,
) -> Partition:
    """`wanted`, with what follows from it: a reassignment complete, who is eligible, a leader.

    The leader epoch grows where the leader is another one, and where a replica was taken away.
    """
    after = _with_elr(before, _completed(wanted), min_isr)
    leader, unclean = _elect(after, running, election)
    if leader in after.elr:
        after = replace(after, isr=(leader,), elr=tuple(node for node in after.elr if node != leader))
    elif unclean:
        after = replace(after, isr=(leader,))
    moved = leader != before.leader or not set(before.replicas) <= set(after.replicas)
    last = () if leader != NO_LEADER else before.last_known_elr or (before.leader,)
    return replace(after, leader=leader, leader_epoch=before.leader_epoch + moved, last_known_elr=last)


def _completed(partition: Partition) -> Partition:
    """Without the replicas that are to be removed, once all that stay are in sync."""
    if not (partition.adding or partition.removing):
        return partition
    replicas = tuple(node for node in partition.replicas if node not in partition.removing)
    isr = tuple(node for node in partition.isr if node not in partition.removing)
    if not isr or not set(replicas) <= set(isr):
        return partition
    return replace(partition, replicas=replicas, isr=isr, adding=(), removing=())


def _with_elr(before: Partition, after: Partition, min_isr: int) -> Partition:
    """Who leaves an ISR that is too small stays eligible to lead (KIP-966)."""
    if len(after.isr) >= min(min_isr, len(after.replicas)):
        return replace(after, elr=()) if after.elr else after
    eligible = {*before.isr, *before.elr} & set(after.replicas)
    return replace(after, elr=tuple(sorted(eligible - set(after.isr))))


def _elect(partition: Partition, running: Collection[int], election: Election) -> tuple[int, bool]:
    """The leader, NO_LEADER where there is nobody; and whether it may lack records that others have."""
    preferred, *others = partition.replicas
    stays_first = election is not Election.PREFERRED
    candidates = (partition.leader, preferred) if stays_first else (preferred, partition.leader)
    eligible = partition.isr or partition.elr
    clean = next((node for node in (*candidates, *others) if node in eligible and node in running), NO_LEADER)
    if clean != NO_LEADER or election is not Election.UNCLEAN:
        return clean, False
    unclean = next((node for node in partition.replicas if node in running), NO_LEADER)
    return unclean, unclean != NO_LEADER
