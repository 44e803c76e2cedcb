"""What is said of programs that cannot be judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshim.torture.evidence import Evidence
from kshim.torture.promises import Judged, Output, Promise
from kshim.torture.settings import Settings, variables
from kshim.torture.unplayable import ended_at_once, never_joined, shows_nothing
from tests.torture.traces import commit, done, traces

REPORT = Settings(["worker"], Judged(Promise.AT_LEAST_ONCE, Output.REPORT))
TOPIC = Settings(["worker"], Judged(Promise.AT_LEAST_ONCE, Output.TOPIC), output_topic="results")


@pytest.mark.parametrize(
    ("connected", "others", "has_joined", "why"),
    [
        ({""}, [], False, "never joined its group in 20 s: does it connect to KSHIM_BOOTSTRAP?"),
        ({"", "c1"}, [], False, "connects, but never joins group torture"),
        ({"c1"}, ["mine", "yours"], False, "is in group mine, yours, not in KSHIM_GROUP, which is torture"),
        (
            {"c1"},
            ["mine"],
            True,
            "no partition of input after 20 s: does the program subscribe to KSHIM_TOPIC?",
        ),
    ],
)
def test_why_a_program_has_no_partition(
    connected: set[str], others: list[str], has_joined: bool, why: str
) -> None:
    first, said = never_joined(REPORT, connected, others, has_joined, ["its last line"]).splitlines()
    assert why in first
    assert said == "its last line"


def test_why_a_program_without_a_group_does_not_take_part() -> None:
    alone = REPORT._replace(has_group=False, start_s=40)
    said = never_joined(alone, {"c1"}, [], False, [])
    assert "no instance fetched a record of input in 40 s" in said
    assert "printed no line" in (shows_nothing(traces(1), alone) or "")
    assert shows_nothing(traces(1), REPORT) is None


@pytest.mark.parametrize(
    ("settings", "evidence", "why"),
    [
        (
            REPORT,
            traces(1, [], [commit(1)], committed=1),
            "printed no line 'processed TOPIC PARTITION OFFSET'",
        ),
        (
            TOPIC,
            traces(1, [], [commit(1)], committed=1),
            "wrote nothing to results, which is in KSHIM_OUTPUT",
        ),
        (
            TOPIC,
            traces(1, [], [commit(1)], committed=1, unknown=["record 0@0 of the output has no number"]),
            "record 0@0 of the output has no number: copy the header kshim-number",
        ),
    ],
)
def test_a_program_that_leaves_no_sign(settings: Settings, evidence: Evidence, why: str) -> None:
    assert why in (shows_nothing(evidence, settings) or "")


def test_programs_that_can_be_judged() -> None:
    for evidence in (traces(1, [done(0)], [commit(1)]), traces(1, None, [commit(1)]), traces(1, [])):
        assert shows_nothing(evidence, REPORT) is None


def test_an_instance_that_ends_at_once_is_quoted() -> None:
    assert ended_at_once("c1", 1, ["ValueError"]).splitlines() == [
        "c1 ended with status 1 before it had any partition",
        "ValueError",
    ]
    assert ended_at_once("c1", -9, []).endswith(", and said nothing")


def test_a_program_finds_its_work_in_variables() -> None:
    found = variables(REPORT._replace(environment={"A": "b"}), "host:1,host:2", "c3", Path("state"))
    assert found["KSHIM_BOOTSTRAP"] == "host:1,host:2"
    assert (found["KSHIM_GROUP"], found["KSHIM_TOPIC"], found["KSHIM_OUTPUT"]) == (
        "torture",
        "input",
        "output",
    )
    assert (found["KSHIM_INSTANCE"], found["KSHIM_STATE_DIR"], found["A"]) == ("c3", "state", "b")
