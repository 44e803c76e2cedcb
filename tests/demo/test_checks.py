"""Each check passes on a good run, and says what is wrong with a bad one."""

import pytest

from kshim.demo.checks import (
    all_received,
    broken,
    checks,
    offsets_kept,
    one_owner,
    read_to_the_end,
    unchanged,
)
from tests.demo.history import (
    RUN,
    A,
    B,
    C,
    P,
    X,
    Y,
    Z,
    acknowledged,
    assigned,
    committed,
    event,
    look,
    received,
    scene_of,
)


def test_a_good_run_holds():
    found = checks(scene_of(*RUN))
    assert [check.promise for check in found if not check.holds] == []
    assert len(found) == 5


def test_nothing_at_all_does_not_hold():
    assert not all_received(scene_of()).holds
    assert not read_to_the_end(scene_of()).holds


def test_every_acknowledged_record_is_received_by_some_member():
    check = all_received(scene_of(acknowledged(1, P, X, Y), received(2, A, X), received(3, B, Y)))
    assert check.holds
    assert check.detail == "2 acknowledged, 2 of them received, 0 more than once"


def test_a_run_that_stopped_half_way_shows_only_what_is_broken():
    history = [committed(1, A, (0, 5)), look(2, committed={0: 5})]
    assert broken(scene_of()) == broken(scene_of(*history)) == []
    assert [check.promise for check in broken(scene_of(*history, look(3)))] == [
        "committed offsets never went back"
    ]


def test_a_lost_record_is_named():
    check = all_received(scene_of(acknowledged(1, P, X, Y), received(2, A, X)))
    assert not check.holds
    assert check.detail.endswith("missing: producer-1 1 (partition 0, offset 1)")


def test_a_record_at_another_offset_is_not_the_one_acknowledged():
    assert not all_received(scene_of(acknowledged(1, P, X), received(2, A, (0, 7, "producer-1 0")))).holds


def test_a_record_received_twice_is_counted_not_refused():
    check = all_received(scene_of(acknowledged(1, P, X), received(2, A, X), received(3, B, X)))
    assert check.holds
    assert check.detail.endswith("1 more than once")


def test_an_unacknowledged_record_may_be_received():
    assert all_received(scene_of(acknowledged(1, P, X), received(2, A, X, Z))).holds


@pytest.mark.parametrize(
    ("other", "words"),
    [((0, 0, "producer-2 9"), "two records at"), ((0, 5, "producer-1 0"), "written twice: producer-1 0")],
)
def test_the_log_does_not_change_and_does_not_repeat(other, words):
    assert unchanged(scene_of(received(1, A, X), received(2, B, X, Y))).holds
    check = unchanged(scene_of(received(1, A, X), received(2, B, other)))
    assert not check.holds
    assert words in check.detail


def test_committed_offsets_are_kept():
    history = [
        committed(1, A, (0, 5)),
        look(2, committed={0: 5}),
        committed(3, B, (1, 2)),
        look(4, committed={0: 5, 1: 2}),
    ]
    assert offsets_kept(scene_of(*history)).holds


@pytest.mark.parametrize("later", [{0: 4}, {}, {1: 7}], ids=["went back", "forgot all", "forgot one"])
def test_committed_offsets_that_went_back(later):
    check = offsets_kept(
        scene_of(committed(1, A, (0, 5)), look(2, committed={0: 5}), look(9, committed=later))
    )
    assert not check.holds
    assert "partition 0: " in check.detail
    assert "after 5" in check.detail


def test_a_confirmed_commit_counts_even_if_it_was_never_seen():
    assert not offsets_kept(scene_of(committed(1, A, (0, 5)), look(2, committed={0: 3}))).holds


def test_a_commit_confirmed_after_the_question_does_not_count():
    assert offsets_kept(scene_of(look(2, committed={0: 3}), committed(3, A, (0, 5)))).holds


def test_commits_that_are_reported_late_count_from_when_they_were_confirmed():
    late = scene_of(look(2, committed={0: 3}), look(9, committed={0: 3}), committed(5, A, (0, 5)))
    assert not offsets_kept(late).holds


def test_read_to_the_end():
    assert read_to_the_end(scene_of(look(1, ends={0: 5}), look(2, committed={0: 5}, ends={0: 5}))).holds
    check = read_to_the_end(scene_of(look(1, committed={0: 5}, ends={0: 6, 1: 2})))
    assert not check.holds
    assert check.detail == "8 records in 2 partitions; partition 0: 5 of 6, 1: 0 of 2"


def test_one_owner():
    assert one_owner(scene_of(assigned(1, A, 1, 0, 1), assigned(2, A, 2, 0), assigned(2, B, 2, 1))).holds
    check = one_owner(scene_of(assigned(1, A, 4, 0, 1), assigned(2, C, 4, 1, 2)))
    assert not check.holds
    assert check.detail == "1 generations; generation 4, partition 1: consumer-1 and consumer-3"


@pytest.mark.parametrize(("records", "values", "agrees"), [(3, 3, True), (4, 3, False), (2, 2, False)])
def test_spark_agrees_with_what_members_received(records, values, agrees):
    history = [received(1, A, X, Y), received(2, B, Y, Z)]
    counted = event("counted", 3, "spark", count=records, values=values)
    check = checks(scene_of(*history, counted))[-1]
    assert check.promise == "PySpark counts the same records"
    assert check.holds == agrees
