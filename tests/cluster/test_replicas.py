"""Which replica leads, and when the leader epoch grows: each rule of Kafka's controller on its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.cluster.replicas import (
    Election,
    cancelled,
    elected,
    fitted,
    led_by,
    placed,
    reassigned,
    started,
    stopped,
)
from kshim.cluster.topics import NO_LEADER, Partition, new_partitions

ALL = (1, 2, 3)
(NEW,) = new_partitions(0, 7, [(1, 2, 3)], ALL)


def led(partition: Partition) -> tuple[int, int, tuple[int, ...]]:
    return partition.leader, partition.leader_epoch, partition.isr


# ---- placement


def test_leaders_and_followers_go_round_the_brokers() -> None:
    assert placed(0, 4, 2, ALL) == [(1, 2), (2, 3), (3, 1), (1, 2)]
    assert placed(5, 1, 3, ALL) == [(3, 1, 2)]
    assert placed(9, 2, 1, (4,)) == [(4,), (4,)]


def test_a_new_partition_is_led_by_its_first_replica_that_runs() -> None:
    (new,) = new_partitions(0, 7, [(2, 3)], (1, 3))
    assert led(new) == (3, 0, (3,))


# ---- brokers that stop and start


def test_a_stopped_leader_is_followed_by_the_next_in_sync() -> None:
    assert led(stopped(NEW, 1, (2, 3), 1)) == (2, 1, (2, 3))


def test_a_stopped_follower_only_leaves_the_isr() -> None:
    assert led(stopped(NEW, 2, (1, 3), 1)) == (1, 0, (1, 3))


def test_stopping_a_broker_without_a_replica_changes_nothing() -> None:
    assert stopped(NEW, 9, ALL, 1) is NEW
    assert started(NEW, 9, ALL, 1) is NEW


def test_a_broker_that_comes_back_follows() -> None:
    one = stopped(NEW, 1, (2, 3), 1)
    assert led(started(one, 1, ALL, 1)) == (2, 1, (2, 3, 1))


def test_only_the_last_in_sync_replica_may_lead_again() -> None:
    partition = NEW
    for node, running in ((3, (1, 2)), (2, (1,)), (1, ())):
        partition = stopped(partition, node, running, 1)
    assert (led(partition), partition.elr) == ((NO_LEADER, 1, ()), (1,))
    assert partition.last_known_elr == (1,)
    assert started(partition, 2, (2,), 1) == partition
    back = started(partition, 1, (1, 2), 1)
    assert (led(back), back.elr, back.last_known_elr) == ((1, 2, (1,)), (), ())


def test_a_replica_that_leaves_a_too_small_isr_stays_eligible() -> None:
    one = stopped(NEW, 3, (1, 2), 2)
    assert (one.isr, one.elr) == ((1, 2), ())
    two = stopped(one, 2, (1,), 2)
    assert (two.isr, two.elr) == ((1,), (2,))
    three = stopped(two, 1, (), 2)
    assert (led(three), three.elr) == ((NO_LEADER, 1, ()), (1, 2))
    back = started(three, 2, (2,), 2)
    assert (led(back), back.elr) == ((2, 2, (2,)), (1,))
    assert started(back, 1, (1, 2), 2).elr == ()


# ---- elections


def test_the_preferred_leader_is_elected_if_it_is_in_sync() -> None:
    moved = led_by(NEW, 3, ALL, 1)
    assert led(moved) == (3, 1, (1, 2, 3))
    assert led(elected(moved, Election.PREFERRED, ALL, 1)) == (1, 2, (1, 2, 3))
    without = stopped(moved, 1, (2, 3), 1)
    assert elected(without, Election.PREFERRED, (2, 3), 1) == without


def test_only_an_unclean_election_lets_one_lead_that_is_not_in_sync() -> None:
    gone = stopped(stopped(replace(NEW, replicas=(1, 2), isr=(1, 2)), 2, (1,), 1), 1, (), 1)
    assert elected(gone, Election.PREFERRED, (2,), 1) == gone
    assert led(elected(gone, Election.UNCLEAN, (2,), 1)) == (2, 2, (2,))


# ---- reassignments


def test_reordering_the_replicas_keeps_the_leader() -> None:
    after = reassigned(NEW, (3, 2, 1), ALL, 1)
    assert (led(after), after.replicas) == ((1, 0, (1, 2, 3)), (3, 2, 1))


def test_adding_a_replica_keeps_leader_and_epoch() -> None:
    after = reassigned(replace(NEW, replicas=(1,), isr=(1,)), (1, 2), ALL, 1)
    assert (led(after), after.replicas, after.adding) == ((1, 0, (1, 2)), (1, 2), ())


def test_removing_a_replica_begins_an_epoch_and_replaces_it_as_leader() -> None:
    assert led(reassigned(NEW, (1, 2), ALL, 1)) == (1, 1, (1, 2))
    assert led(reassigned(NEW, (3, 2), ALL, 1)) == (3, 1, (2, 3))


def test_a_reassignment_waits_for_a_broker_that_is_stopped() -> None:
    start = replace(NEW, replicas=(1,), isr=(1,))
    waiting = reassigned(start, (2,), (1, 3), 1)
    assert (waiting.replicas, waiting.adding, waiting.removing) == ((2, 1), (2,), (1,))
    assert led(waiting) == (1, 0, (1,))
    assert cancelled(waiting, (1, 3), 1) == replace(start, leader_epoch=1)
    done = started(waiting, 2, ALL, 1)
    assert (done.replicas, done.adding, done.removing) == ((2,), (), ())
    assert led(done) == (2, 1, (2,))


def test_a_leader_that_had_no_replica_takes_its_predecessors_place() -> None:
    after = led_by(replace(NEW, replicas=(1, 2), isr=(1, 2)), 3, ALL, 1)
    assert (after.replicas, after.leader, set(after.isr)) == ((3, 2), 3, {2, 3})
    assert after.leader_epoch > NEW.leader_epoch


# ---- another number of brokers at the next start


def test_at_a_start_all_brokers_run_and_are_in_sync() -> None:
    stored = stopped(NEW, 1, (2, 3), 1)
    assert led(fitted(stored, ALL)) == (2, 1, (2, 3, 1))
    assert fitted(NEW, ALL) == NEW


def test_replicas_on_brokers_that_are_no_more_are_given_up() -> None:
    assert led(fitted(led_by(NEW, 3, ALL, 1), (1, 2))) == (1, 2, (1, 2))
    alone = replace(NEW, leader=3, replicas=(3,), isr=(3,))
    assert led(fitted(alone, (1, 2))) == (2, 1, (2,))


# ---- any history


@given(
    st.lists(
        st.tuples(st.sampled_from(["stop", "start", "elect", "lead", "reassign"]), st.integers(1, 4)),
        max_size=30,
    ),
    st.integers(1, 3),
)
def test_a_leader_always_runs_and_is_in_sync_and_epochs_never_go_back(
    history: list[tuple[str, int]], min_isr: int
) -> None:
    running = {1, 2, 3, 4}
    partition = NEW
    for step, node in history:
        before = partition
        if step == "stop":
            running.discard(node)
            partition = stopped(partition, node, running, min_isr)
        elif step == "start":
            running.add(node)
            partition = started(partition, node, running, min_isr)
        elif step == "elect":
            partition = elected(partition, Election.UNCLEAN, running, min_isr)
        elif step == "lead" and node in running:
            partition = led_by(partition, node, running, min_isr)
        elif step == "reassign":
            partition = reassigned(partition, (node, node % 4 + 1), running, min_isr)
        assert partition.leader_epoch - before.leader_epoch >= (partition.leader != before.leader)
        assert set(partition.isr) <= set(partition.replicas) & running
        assert not set(partition.elr) & set(partition.isr)
        if partition.leader == NO_LEADER:
            assert not set(partition.isr)
        else:
            assert partition.leader in partition.isr


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_every_broker_leads_about_as_much_as_every_other(nodes: int) -> None:
    leaders = [replicas[0] for replicas in placed(1, 50, nodes, range(1, nodes + 1))]
    counts = [leaders.count(node) for node in range(1, nodes + 1)]
    assert max(counts) - min(counts) <= 1
