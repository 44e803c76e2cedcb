"""A table has a row for each figure, and marks where the load generator may have been the limit."""

from __future__ import annotations

import re

from benchmarks.plotting import bars
from benchmarks.processor import Measured
from benchmarks.reporting import as_json, number, rows, titles
from benchmarks.running import Plan, Series
from benchmarks.servers import APACHE_KAFKA, KSHIM, Side


def measured(rate: float, p99_ms: float, busy: float = 0.1) -> Measured:
    return Measured({"requests/s": rate, "p99 ms": p99_ms}, 1000, 0.05, busy, 40.0)


OURS = Series("heartbeat", "1 x 1", Side(KSHIM, "commit"), [measured(300, 2), measured(200, 2, busy=0.2)])
PEER = Series(
    "heartbeat", "1 x 1", Side(APACHE_KAFKA), [measured(100, 1, busy=0.95), measured(100, 4, busy=0.97)]
)


def test_each_figure_is_compared_with_the_peer_s() -> None:
    assert rows([OURS, PEER]) == [
        [
            "1 x 1",
            "commit",
            "requests/s",
            "250",
            "100*",
            "2.50",
            "2.00..3.00",
            "50.0",
            "50.0",
            "40.0",
            "40.0",
        ],
        ["", "", "p99 ms", "2.00", "2.50*", "1.25", "0.500..2.00", "", "", "", ""],
    ]
    assert len(titles([OURS, PEER])) == len(rows([OURS, PEER])[0])


def test_without_a_peer_there_is_the_range_of_kshim_s_own_figures() -> None:
    assert rows([OURS]) == [
        ["1 x 1", "commit", "requests/s", "250", "200..300", "50.0", "40.0"],
        ["", "", "p99 ms", "2.00", "2.00..2.00", "", ""],
    ]
    assert len(titles([OURS])) == len(rows([OURS])[0])


def test_numbers_have_three_digits_that_matter() -> None:
    assert [number(value) for value in (None, 12345.6, 123.4, 12.34, 1.234, 0.1234)] == [
        "-",
        "12,346",
        "123",
        "12.3",
        "1.23",
        "0.123",
    ]


def test_the_file_has_every_round_and_where_it_was_measured() -> None:
    found = as_json([OURS, PEER], Plan(APACHE_KAFKA))
    assert {"processor", "cores"} <= set(found["machine"])
    assert found["versions"]["python"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", found["versions"]["Apache Kafka"])
    assert found["date"]
    assert [(it["server"], it["flush"], len(it["rounds"])) for it in found["measured"]] == [
        ("kshim", "commit", 2),
        ("Apache Kafka", None, 2),
    ]
    assert found["measured"][0]["rounds"][0]["figures"] == {"requests/s": 300, "p99 ms": 2}


def test_the_main_figure_of_each_load_is_drawn() -> None:
    ((label, flush, ratio),) = bars([[OURS, PEER], [OURS]])
    assert (label, flush, ratio.middle) == ("heartbeat 1 x 1", "commit", 2.5)
