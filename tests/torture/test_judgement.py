"""Which anomalies are found in which traces."""

from __future__ import annotations

import pytest

from kshim.torture.evidence import Assigned, Happening
from kshim.torture.judgement import TOLERANCE_MS, breaking, is_drained
from kshim.torture.promises import BREAKING, MEANING, Anomaly, Judged, Output, Promise, cannot_show
from tests.torture.traces import AT, LATE_MS, LEAST, commit, done, findings, found, given, record, traces

ORDERED = Judged(Promise.AT_LEAST_ONCE, Output.REPORT, in_order=True)
OFFSETS = Judged(Promise.AT_LEAST_ONCE, Output.OFFSETS)


def test_nothing_is_found_where_all_is_well() -> None:
    assert found(traces(2, [done(0), done(1)], [commit(2, 20)], committed=2)) == []


def test_a_record_behind_which_the_group_has_committed_is_lost() -> None:
    evidence = traces(2, [done(1)], [commit(2, 20, "c2")], committed=2)
    (finding,) = findings(evidence)
    assert (finding.anomaly, finding.number) == (Anomaly.LOST, 0)
    assert finding.text == "never processed, though offset 2 is committed by c2"


def test_a_record_that_the_group_has_not_reached_is_stuck() -> None:
    assert found(traces(2, [done(0)], [commit(1)], committed=1)) == [(Anomaly.STUCK, 1)]


def test_an_offset_that_stays_behind_is_stuck_unless_the_program_commits_nothing() -> None:
    processed = [done(0), done(1)]
    assert found(traces(2, processed, [commit(1, 20)], committed=1)) == [
        (Anomaly.LATE, 1),
        (Anomaly.STUCK, None),
    ]
    assert (Anomaly.STUCK, None) not in found(traces(2, processed))


def test_a_record_that_was_processed_twice() -> None:
    evidence = traces(1, [done(0), done(0, 30, "c2")], [commit(1, 40)], committed=1)
    (finding,) = findings(evidence)
    assert finding.anomaly is Anomaly.DUPLICATED
    assert finding.text == "processed 2 times, by c1 and c2"


@pytest.mark.parametrize(("after_ms", "anomalies"), [(TOLERANCE_MS, []), (TOLERANCE_MS + 1, [Anomaly.EARLY])])
def test_a_commit_before_the_processing_counts_beyond_the_tolerance(
    after_ms: float, anomalies: list[Anomaly]
) -> None:
    evidence = traces(1, [done(0, 100 + after_ms)], [commit(1, 100)], committed=1)
    assert [anomaly for anomaly, _ in found(evidence)] == anomalies


def test_a_line_that_may_have_been_read_late_is_not_early_nor_out_of_order() -> None:
    late = done(0, 5000.0)._replace(late_ms=4700.0)
    assert found(traces(1, [late], [commit(1, 100)], committed=1)) == []
    other = done(1, 1000.0, "c2")
    evidence = traces(2, [other, late], committed=2)
    assert (Anomaly.OUT_OF_ORDER, 0) not in found(evidence, ORDERED)


def test_a_refused_commit_and_one_in_a_transaction_are_not_early() -> None:
    for early in (commit(1, 100, error="UNKNOWN_MEMBER_ID"), commit(1, 100, transaction="t")):
        evidence = traces(1, [done(0, LATE_MS)], [early, commit(1, LATE_MS)], committed=1)
        assert found(evidence) == []


def test_processing_long_before_the_commit_is_late() -> None:
    evidence = traces(1, [done(0, 0)], [commit(1, LATE_MS)], committed=1)
    assert found(evidence) == [(Anomaly.LATE, 0)]
    assert Anomaly.LATE in BREAKING[Promise.AT_MOST_ONCE]
    assert breaking(findings(evidence), LEAST) == []


def test_the_order_of_a_key_is_that_of_the_first_processing() -> None:
    records = [record(0, "a"), record(1, "b"), record(2, "a")]
    again = [done(0, 1), done(1, 2), done(2, 3), done(0, 4), done(2, 5)]
    assert (Anomaly.OUT_OF_ORDER, 0) not in found(traces(records, again, committed=3), ORDERED)
    skipped = [done(2, 1), done(1, 2), done(0, 3)]
    assert (Anomaly.OUT_OF_ORDER, 0) in found(traces(records, skipped, committed=3), ORDERED)


def test_two_instances_at_nearly_the_same_time_are_in_no_certain_order() -> None:
    near = [done(1, 1000, "c1"), done(0, 1000 + TOLERANCE_MS, "c2")]
    assert (Anomaly.OUT_OF_ORDER, 0) not in found(traces(2, near, committed=2), ORDERED)
    far = [done(1, 1000, "c1"), done(0, 1001 + TOLERANCE_MS, "c2")]
    assert (Anomaly.OUT_OF_ORDER, 0) in found(traces(2, far, committed=2), ORDERED)


def test_outputs_of_one_partition_are_ordered_by_their_offsets() -> None:
    same_time = [done(1, 1000, "", (0, 7)), done(0, 1000, "", (0, 8))]
    assert (Anomaly.OUT_OF_ORDER, 0) in found(traces(2, same_time, committed=2), ORDERED)


def test_records_of_an_aborted_transaction_must_not_be_processed_and_are_not_lost() -> None:
    records = [record(0, is_aborted=True), record(1)]
    fine = [done(1)]
    assert found(traces(records, fine, [commit(2)], committed=2)) == []
    assert found(traces(records, [done(0), *fine], [commit(2)], committed=2)) == [(Anomaly.ABORTED, 0)]


def test_an_instance_that_goes_on_after_it_has_lost_the_partition() -> None:
    owners = [given("c1", 0), given("c2", 1000)]
    signs = [done(0, 1200, "c2"), done(0, 1000 + 2 * TOLERANCE_MS, "c1")]
    evidence = traces(1, signs, [commit(1, 1300)], committed=1, assigned=owners)
    assert (Anomaly.TWO_OWNERS, 0) in found(evidence)
    again = evidence._replace(assigned=[*owners, given("c1", 1400)])
    assert (Anomaly.TWO_OWNERS, 0) not in found(again)


def test_a_commit_that_goes_back() -> None:
    back = [commit(2, 20), commit(3, 25, error="ILLEGAL_GENERATION"), commit(1, 30, "c2")]
    evidence = traces(2, [done(0), done(1)], [*back, commit(2, 40)], committed=2)
    (finding,) = findings(evidence)
    assert (finding.anomaly, finding.partition) == (Anomaly.WENT_BACK, AT)
    assert finding.text == "offset 1 committed by c2, after 2"


def test_outputs_that_fit_nothing_are_unexpected() -> None:
    evidence = traces(1, [done(0)], [commit(1)], committed=1, unknown=["record 0@7 has no number"])
    assert found(evidence) == [(Anomaly.UNEXPECTED, None)]


def test_an_added_partition_that_no_client_has_heard_of_is_not_judged() -> None:
    added = traces(1, [], partitions=0)
    assert found(added) == []
    assert added.unheard == {AT}
    heard = added._replace(assigned=[given("c1", 0)])
    assert found(heard) == [(Anomaly.STUCK, 0)]
    assert not heard.unheard
    guest = heard._replace(happened=[Happening(0, "c1 joins", "c1", 1.0, "join")])
    assert guest.unheard == {AT}
    forgotten = heard._replace(assigned=[given("c1", 0), Assigned((), 1, "c1")])
    assert forgotten.unheard == {AT}
    assert heard._replace(stopped_ms=-1).unheard == {AT}
    assert found(added._replace(partitions=1)) == [(Anomaly.STUCK, 0)]


def test_offsets_alone_show_what_was_never_fetched() -> None:
    sent = [(1, 1, 50.0)]
    evidence = traces(2, None, [commit(2, 100)], committed=2, fetched=sent)
    assert found(evidence, OFFSETS) == [(Anomaly.LOST, 0)]
    early = evidence._replace(fetched=[each._replace(first=0, at_ms=200.0) for each in evidence.fetched])
    assert found(early, OFFSETS) == [(Anomaly.EARLY, 0), (Anomaly.EARLY, 1)]
    behind = evidence._replace(committed={AT: 1}, commits=())
    assert found(behind, OFFSETS) == [(Anomaly.STUCK, None)]


def test_when_all_is_drained() -> None:
    assert is_drained(traces(2, [], committed=2))
    assert not is_drained(traces(2, [done(0), done(1)], committed=1))
    assert is_drained(traces(2, [done(0), done(1)]))
    assert not is_drained(traces(2, [done(0)]))
    assert not is_drained(traces(0))


def test_every_anomaly_has_a_meaning_and_breaks_a_promise() -> None:
    assert MEANING.keys() == set(Anomaly)
    in_order = Judged(Promise.EXACTLY_ONCE, Output.TOPIC, in_order=True).breaking
    assert frozenset().union(*BREAKING.values()) | in_order == set(Anomaly)


@pytest.mark.parametrize(
    ("judged", "why"),
    [
        (Judged(Promise.EXACTLY_ONCE, Output.OFFSETS), "committed offsets do not show exactly-once"),
        (Judged(Promise.AT_MOST_ONCE, Output.OFFSETS), "committed offsets do not show at-most-once"),
        (Judged(Promise.AT_LEAST_ONCE, Output.OFFSETS, in_order=True), "do not show an order"),
        (Judged(Promise.EXACTLY_ONCE, Output.REPORT), "cannot be taken back"),
    ],
)
def test_promises_that_an_output_cannot_show(judged: Judged, why: str) -> None:
    said = cannot_show(judged)
    assert said is not None
    assert why in said
    assert "--output TOPIC" in said
    assert cannot_show(judged._replace(output=Output.TOPIC)) is None


def test_a_program_that_commits_nothing_loses_what_it_leaves_out() -> None:
    left_out = breaking(findings(traces(3, [done(0), done(2)])), LEAST)
    assert [(each.anomaly, each.number) for each in left_out] == [(Anomaly.LOST, 1)]
    stands_still = breaking(findings(traces(3, [done(0)])), LEAST)
    assert [(each.anomaly, each.number) for each in stands_still] == [(Anomaly.STUCK, 1), (Anomaly.STUCK, 2)]
