"""The verdict, the life of a record, and the page."""

from __future__ import annotations

from kshim.torture.evidence import Begun, Evidence, Happening, Rebalanced
from kshim.torture.page import page
from kshim.torture.promises import MEANING, Anomaly, Judged, Output, Promise
from kshim.torture.schedule import Event, Schedule
from kshim.torture.story import lines, told, verdict
from tests.torture.traces import AT, LEAST, commit, done, findings, given, traces

EXACTLY = Judged(Promise.EXACTLY_ONCE, Output.TOPIC)


def killed() -> Evidence:
    """c1 commits records 0 and 1, is killed, and has processed only record 0."""
    return traces(
        2,
        [done(0, 1500)],
        [commit(2, 1600)],
        committed=2,
        fetched=[(0, 1, 1400.0)],
        assigned=[given("c1", 0)],
        happened=[
            Happening(1700, "c1 was killed", "c1", 2500, "kill"),
            Happening(1800, "c2 was killed", "c2", 2500, "kill"),
            Happening(1900, "broker 1 stopped", "", None, "broker"),
            Happening(9000, "c1 was killed", "c1", None, "kill"),
        ],
        rebalances=[Rebalanced(2000, 3, "a member's session expired", ("c1",), {AT: ("c1", "c2")})],
    )


def test_the_verdict_names_what_breaks_the_promise_and_what_it_allows() -> None:
    evidence = killed()
    assert verdict(evidence, findings(evidence), LEAST) == [
        "at-least-once is broken: 1 lost (of 2 records)",
        f"      1 lost: {MEANING[Anomaly.LOST]}",
    ]
    fine = traces(1, [done(0), done(0, 30)], [commit(1, 40)], committed=1)
    first, allowed = verdict(fine, findings(fine), LEAST)
    assert first == "at-least-once holds, for 1 records"
    assert allowed.endswith("; the promise allows it")
    assert verdict(fine, findings(fine), EXACTLY)[0] == "exactly-once is broken: 1 duplicated (of 1 records)"


def test_partitions_that_are_not_judged_are_named() -> None:
    evidence = traces(1, [], partitions=0)
    first, unheard = verdict(evidence, findings(evidence), LEAST)
    assert first == "at-least-once holds, for 1 records"
    assert unheard.startswith("  not judged: in-0, which were added")


def test_the_life_of_a_lost_record() -> None:
    evidence = killed()
    (one,) = told(evidence, findings(evidence), LEAST)
    assert list(lines(one, 0)) == [
        "in-0@1 (number 1, k): lost: never processed, though offset 2 is committed by c1",
        "     1.000 s   produced",
        "     1.400 s   fetched by c1, with offsets 0 to 1",
        "     1.600 s   offset 2 committed by c1",
        "     1.700 s · c1 was killed",
        "     1.900 s · broker 1 stopped",
        "     2.000 s · the group rebalanced (generation 3) because a member's session expired: c1; "
        "in-0 moved from c1 to c2",
        "    10.000 s   the run ended, and nobody had processed it",
    ]


def test_the_life_says_where_an_instance_was_told_to_begin() -> None:
    evidence = killed()
    told_to = [Begun(AT, -1, 1300.0, "c1"), Begun(AT, 0, 1350.0, "c1"), Begun(AT, 0, 1350.0, "c9")]
    begun = evidence._replace(begun=told_to)
    (one,) = told(begun, findings(begun), LEAST)
    said = [moment.text for moment in one.moments if "told to begin" in moment.text]
    assert said == ["c1 was told to begin at no offset", "c1 was told to begin at offset 0"]


def test_findings_of_one_moment_are_told_once() -> None:
    evidence = traces(3, [], [commit(3, 100)], committed=3)
    (one,) = told(evidence, findings(evidence), LEAST)
    assert one.title.endswith("(and 2 more at the same moment)")


def test_a_refused_commit_and_one_that_goes_back_are_part_of_the_life() -> None:
    commits = [commit(2, 100, error="UNKNOWN_MEMBER_ID"), commit(2, 200, "c2"), commit(1, 300, "c2")]
    evidence = traces(2, [done(0), done(0, 90), done(1), done(1, 95)], commits, committed=1)
    said = [line for one in told(evidence, findings(evidence), EXACTLY) for line in lines(one, 0)]
    assert "     0.100 s   offset 2 committed by c1, refused: UNKNOWN_MEMBER_ID" in said
    assert "     0.300 s   offset 1 committed by c2: it went back" in said


def test_the_page_of_an_interrupted_run_is_no_verdict() -> None:
    text = page(killed(), None, LEAST, Schedule(7, 2, 8000, ()), "worker")
    assert "interrupted, so this is no verdict" in text
    assert "holds, for" not in text
    assert "c1 was killed" in text


def test_the_page_is_whole_and_escapes_what_programs_say() -> None:
    evidence = killed()
    evil = evidence._replace(
        happened=[*evidence.happened, Happening(3000, "c1 ended: <script>alert(1)</script>", "c1")]
    )
    schedule = Schedule(7, 2, 8000, (Event(1700, "kill", 1, 800),))
    text = page(evil, findings(evil), LEAST, schedule, "python <worker>.py")
    assert text.startswith("<!doctype html>")
    assert "at-least-once is broken: 1 lost" in text
    assert "<script" not in text
    assert "python &lt;worker&gt;.py" in text
    assert "c1 has in-0" in text
    for name in ("src=", "href="):
        assert name not in text, "it needs no other file"
