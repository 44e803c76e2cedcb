"""The replicas of one partition, and which of them leads: the rules of Kafka's controller, as pure functions.

All brokers of this process share one log, so a replica is in sync as soon as its broker runs. The rules that
remain are those that clients see: which replicas are in the ISR, which one is elected, and when the leader
epoch grows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import Enum

from kshim.cluster.topics import NO_LEADER, Partition


class Election(Enum):
    """The kinds of elections. The value of each says which replica leads afterwards."""

    ONLINE = "the leader stays; else the first replica that is in sync"
    PREFERRED = "the first replica, if it is in sync"
    UNCLEAN = "the leader stays; else any replica that runs"


def placed(start: int, count: int, replication_factor: int, nodes: Sequence[int]) -> list[tuple[int, ...]]:
    """The replicas of `count` partitions, round robin over `nodes`.

    `nodes[start % len(nodes)]` leads the first partition. replication_factor: at most the number of nodes.
    """
    size = len(nodes)
    turns = [
        tuple(nodes[(start + n + replica) % size] for replica in range(replication_factor))
        for n in range(size)
    ]
    return [turns[n % size] for n in range(count)]


def stopped(partition: Partition, node_id: int, running: Collection[int], min_isr: int) -> Partition:
    """`partition` after broker `node_id` has stopped. running: does not include that broker."""
    if node_id not in partition.replicas:
        return partition
    isr = tuple(replica for replica in partition.isr if replica != node_id)
    return changed(partition, replace(partition, isr=isr), running, min_isr)


def started(partition: Partition, node_id: int, running: Collection[int], min_isr: int) -> Partition:
    """`partition` after broker `node_id` has started. running: includes that broker.

    The broker leads only if the partition had no leader.
    """
    if node_id not in partition.replicas:
        return partition
    if partition.leader == NO_LEADER:
        partition = changed(partition, partition, running, min_isr)
    if partition.leader == NO_LEADER or node_id in partition.isr:
        return partition
    return changed(partition, replace(partition, isr=(*partition.isr, node_id)), running, min_isr)


def elected(partition: Partition, election: Election, running: Collection[int], min_isr: int) -> Partition:
    """`partition` after an election; unchanged if no replica can be elected."""
    return changed(partition, partition, running, min_isr, election)


def led_by(partition: Partition, node_id: int, running: Collection[int], min_isr: int) -> Partition:
    """`partition` with the running broker `node_id` as its leader.

    A broker that is no replica first takes the leader's place among the replicas, as by a reassignment.
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
    """`partition` with a reassignment to the replicas `target` begun (KIP-455).

    If all of them run, the reassignment is complete at once.
    """
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    wanted = replace(partition, replicas=(*target, *removing), adding=adding, removing=removing)
    wanted = changed(partition, wanted, running, min_isr)
    for node_id in adding:
        if node_id in running:
            wanted = started(wanted, node_id, running, min_isr)
    return wanted


def cancelled(partition: Partition, running: Collection[int], min_isr: int) -> Partition:
    """`partition` with the replicas that it had before its reassignment."""
    kept = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    isr = tuple(replica for replica in partition.isr if replica in kept)
    wanted = replace(partition, replicas=kept, isr=isr, adding=(), removing=())
    return changed(partition, wanted, running, min_isr)


def fitted(partition: Partition, node_ids: Sequence[int]) -> Partition:
    """`partition` at the start of a server with the brokers `node_ids`: all of them run, and are in sync.

    Replicas on brokers that no longer exist are dropped; no record is lost, since all brokers share one log.
    The leader stays if its broker exists.
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
    """Return `wanted` with all that follows from it: a completed reassignment, the ELR, an elected leader.

    The leader epoch grows if the leader changes or a replica is removed. before: the current partition.
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
    """Complete the reassignment of `partition`, if all replicas that stay are in sync."""
    if not (partition.adding or partition.removing):
        return partition
    replicas = tuple(node for node in partition.replicas if node not in partition.removing)
    isr = tuple(node for node in partition.isr if node not in partition.removing)
    if not isr or not set(replicas) <= set(isr):
        return partition
    return replace(partition, replicas=replicas, isr=isr, adding=(), removing=())


def _with_elr(before: Partition, after: Partition, min_isr: int) -> Partition:
    """`after` with its ELR: if the ISR is smaller than `min_isr`, replicas that left it may still lead
    (KIP-966).
    """
    if len(after.isr) >= min(min_isr, len(after.replicas)):
        return replace(after, elr=()) if after.elr else after
    eligible = {*before.isr, *before.elr} & set(after.replicas)
    return replace(after, elr=tuple(sorted(eligible - set(after.isr))))


def _elect(partition: Partition, running: Collection[int], election: Election) -> tuple[int, bool]:
    """Return the elected leader, or NO_LEADER, and True if that leader was not in sync (unclean)."""
    preferred, *others = partition.replicas
    stays_first = election is not Election.PREFERRED
    candidates = (partition.leader, preferred) if stays_first else (preferred, partition.leader)
    eligible = partition.isr or partition.elr
    clean = next((node for node in (*candidates, *others) if node in eligible and node in running), NO_LEADER)
    if clean != NO_LEADER or election is not Election.UNCLEAN:
        return clean, False
    unclean = next((node for node in partition.replicas if node in running), NO_LEADER)
    return unclean, unclean != NO_LEADER
