"""Evidence from the server's notes, from lines, and from an output topic."""

from __future__ import annotations

import pytest

from kshim.torture.evidence import Assigned, Begun, Commit, Fetched, Processed
from kshim.torture.gathering import (
    abandoned_in,
    assigned_in,
    begun_in,
    commits_in,
    fetched_in,
    from_outputs,
    from_reports,
    instance_of,
    listener_of,
    members_in,
    rebalances_in,
    static_id_in,
    transaction_in,
)
from kshim.torture.outputs import (
    VALUE,
    cannot_fill,
    input_value,
    instance_in,
    looks_like_report,
    number_in,
    pointed,
    reported,
)
from kshim.torture.stage import Incoming, Note
from tests.torture.traces import record


def note(what: str, at_ms: float = 1.0, listener: str = "C1", **more: object) -> Note:
    return {"what": what, "at_ms": at_ms, "listener": listener, "group": "g", "error": "", **more}


def committed(offset: int, at_ms: float = 1.0, **more: object) -> Note:
    common = {"topic": "in", "partition": 0, "offset": offset, "transaction": "", "member": "m"}
    return note("committed", at_ms, **{**common, **more})


def test_an_instance_is_known_by_its_listener() -> None:
    assert instance_of(listener_of("c12")) == "c12"
    assert instance_of("PLAINTEXT") == instance_of("CONTROLLER") == ""


def test_what_was_fetched_assigned_and_committed() -> None:
    notes = [
        note("fetched", topic="in", partition=1, first=3, last=7),
        note("fetched", topic="other", partition=1, first=3, last=7),
        note("fetched", listener="PLAINTEXT", topic="in", partition=1, first=3, last=7),
        note("assigned", 2.0, partitions=[["in", 0], ["other", 1]]),
        note("assigned", 3.0, partitions=[["in", 0]]) | {"group": "h"},
        committed(5, 4.0),
        committed(6, 5.0, error="UNKNOWN_MEMBER_ID"),
        committed(7, 6.0, topic="other"),
    ]
    assert list(fetched_in(notes, "in")) == [Fetched(("in", 1), 3, 7, 1.0, "c1")]
    assert list(assigned_in(notes, "g", "in")) == [Assigned((("in", 0),), 2.0, "c1")]
    assert list(commits_in(notes, "g", "in")) == [
        Commit(("in", 0), 5, 4.0, "c1"),
        Commit(("in", 0), 6, 5.0, "c1", "UNKNOWN_MEMBER_ID"),
    ]


def test_where_instances_were_told_to_begin() -> None:
    begins = {"topic": "in", "partition": 0, "offset": 4}
    notes = [
        note("begins", 1.0, **begins),
        note("begins", 2.0, **{**begins, "topic": "other"}),
        note("begins", 3.0, **begins) | {"error": "NOT_COORDINATOR"},
        note("begins", 4.0, listener="PLAINTEXT", **begins),
    ]
    assert list(begun_in(notes, "g", "in")) == [Begun(("in", 0), 4, 1.0, "c1")]


def test_a_commit_in_a_transaction_counts_from_its_end() -> None:
    notes = [
        committed(5, 1.0, transaction="t"),
        note("ended", 2.0, transaction="t", is_commit=True),
        committed(6, 3.0, transaction="t"),
        note("ended", 4.0, transaction="t", is_commit=False),
        committed(7, 5.0, transaction="t"),
        note("producer", 6.0, transaction="t"),
        committed(8, 7.0, transaction="t"),
    ]
    found = [(each.offset, each.at_ms, each.error) for each in commits_in(notes, "g", "in")]
    assert found == [(5, 2.0, ""), (6, 4.0, "aborted"), (7, 6.0, "aborted"), (8, 7.0, "aborted")]


def test_the_members_of_an_instance() -> None:
    notes = [
        note("joined", 1.0, member="a", instance=None),
        note("joined", 2.0, member="b", instance="static-1"),
        note("joined", 2.0, listener="C2", member="c", instance=None),
        note("producer", 3.0, transaction="t-1"),
    ]
    assert members_in(notes, "g", "c1") == ["a", "b"]
    assert members_in(notes, "g", "c1", since_ms=1.5) == ["b"]
    assert (static_id_in(notes, "g", "c1"), static_id_in(notes, "g", "c2")) == ("static-1", "")
    assert (transaction_in(notes, "c1"), transaction_in(notes, "c2")) == ("t-1", "")


def test_a_member_is_abandoned_when_its_connection_joins_with_another_id() -> None:
    def joined(member: str, address: str, error: str = "") -> Note:
        return note("joined", member=member, address=address, error=error)

    first, again = joined("a", "host:1"), joined("b", "host:1")
    assert abandoned_in([first, joined("c", "host:2"), again], "g") == ["a"]
    assert abandoned_in([first, again], "other group") == []
    assert abandoned_in([first, joined("b", "host:1", "MEMBER_ID_REQUIRED")], "g") == []
    assert abandoned_in([first, first], "g") == []
    assert abandoned_in([first, again, joined("a", "host:3")], "g") == [], "it lives elsewhere"


def test_rebalances_name_instances() -> None:
    notes = [
        note("joined", member="a", instance=None),
        note("joined", listener="C2", member="b", instance=None),
    ]
    move = {"topic": "in", "partition": 3, "from": "a", "to": "b", "unowned_ms": 5}
    first = {**move, "partition": 4, "from": None}
    cause = {"cause": "a member left", "members_at_cause": ["a", "x"]}
    shown = {"began_ms": 9, "generation": 2, **cause, "moved": [move, first]}
    (found,) = rebalances_in([shown], notes)
    assert (found.at_ms, found.generation, found.cause, found.by) == (9, 2, "a member left", ("c1",))
    assert found.moved == {("in", 3): ("c1", "c2"), ("in", 4): ("", "c2")}


def test_lines_that_report() -> None:
    assert reported("processed orders 3 17") == ("orders", 3, 17)
    assert reported("2026-11-28 processed orders 3 17") is None
    assert reported("processed orders 3") is None
    assert looks_like_report("processed 17")
    assert not looks_like_report("processed orders 3 17")
    assert not looks_like_report("polling")
    signs, unknown = from_reports(
        [("c1", 5.0, ("in", 0, 1)), ("c2", 6.0, ("in", 0, 9))], [record(0), record(1)]
    )
    assert signs == [Processed(1, 5.0, "c1")]
    late, _ = from_reports([("c1", 5.0, ("in", 0, 1))], [record(1)], lambda at_ms: at_ms - 2)
    assert (late[0].late_ms, late[0].earliest_ms) == (3.0, 2.0)
    assert unknown == ["c2 reported in-0@9, where no record was produced"]


@pytest.mark.parametrize(
    ("headers", "value", "pointer", "number"),
    [
        ([("kshim-number", b"7")], None, "/number", 7),
        ([("kshim-number", b"seven")], b'{"number": 8}', "/number", 8),
        ([], input_value(VALUE, 9, "k").encode(), "/number", 9),
        ([], b'{"of": [{"a/b": 4}]}', "/of/0/a~1b", 4),
        ([], b'{"number": true}', "/number", None),
        ([], b"not json", "/number", None),
        ([], None, "/number", None),
    ],
)
def test_the_number_of_an_output(
    headers: list[tuple[str, bytes | None]], value: bytes | None, pointer: str, number: int | None
) -> None:
    assert number_in(headers, value, pointer) == number


def test_a_pointer_that_leads_nowhere() -> None:
    assert pointed({"a": [1]}, "/a/1") is pointed({"a": 1}, "/a/b") is pointed([1], "/x") is None


def test_outputs_are_signs_by_number() -> None:
    outputs = [
        Incoming(0, 1, 20.0, b"{}", [("kshim-number", b"1"), ("kshim-instance", b"c2")]),
        Incoming(1, 0, 10.0, b'{"number": 0}', []),
        Incoming(1, 1, 30.0, b'{"number": 5}', []),
        Incoming(1, 2, 30.0, b"?", []),
    ]
    signs, unknown = from_outputs(outputs, [record(0), record(1)], "/number")
    assert signs == [Processed(0, 10.0, "", (1, 0)), Processed(1, 20.0, "c2", (0, 1))]
    assert unknown == [
        "record 1@1 of the output has the number 5, which was not produced",
        "record 1@2 of the output has no number",
    ]
    assert instance_in([("kshim-instance", None)]) == ""


def test_a_value_is_made_of_a_template() -> None:
    assert input_value(VALUE, 317, "key-7") == '{"number": 317, "key": "key-7"}'
    assert input_value("$number costs 3 $$", 4, "k") == "4 costs 3 $"


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (VALUE, None),
        ("plain", None),
        ("$ 3", "has a $ without a name"),
        ("$order", "has $order: only $number and $key are known"),
    ],
)
def test_a_template_that_cannot_be_filled(template: str, why: str | None) -> None:
    assert (why or "") in (cannot_fill(template) or "")
    assert (why is None) == (cannot_fill(template) is None)
