"""The table of docs/faults.md has a row for each fault that is tried."""

from __future__ import annotations

from integration.clients.faults.cases import CASES, CLIENTS
from integration.clients.faults.results import END, PAGE, START, Result, drawn
from integration.clients.faults.watching import JOINS_AGAIN, STOPS, fails, gets


def test_each_fault_has_a_row() -> None:
    table = PAGE.read_text().split(START)[1].split(END)[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]]
    assert [row for row in rows if not row.startswith("**")] == [case.name for case in CASES]


def test_the_last_result_of_each_fault_is_shown() -> None:
    said = {
        "kafka-python": [JOINS_AGAIN, fails("X")],
        "confluent-kafka": [],
        "kafka-clients-4.2": [gets("Y"), STOPS],
    }
    results = [
        Result(client, "1.2", case.name, words, late_s=late_s, has_some_twice=client == "kafka-python")
        for case in CASES
        for client in CLIENTS
        for words, late_s in (((), 9.0), (said[client], 1.26 if client == "confluent-kafka" else 0.1))
    ]
    lines = drawn(f"before\n{START}old\n{END}after\n", results).splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert lines[2] == (
        "| Fault | kafka-python 1.2 | confluent-kafka (librdkafka) 1.2 | Java kafka-clients 1.2 |"
    )
    assert lines[5] == (
        f"| {CASES[0].name} | the commit fails: X, joins again, has some records twice "
        "| records up to 1.3 s late | gives no more records, the application gets Y |"
    )
