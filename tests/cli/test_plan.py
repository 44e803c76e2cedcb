"""`kshim plan`: its table, its JSON, and what it says of wrong options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import Run

RESTART = ("--rolling-restart", "10s", "--duration", "5m")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capsys)


def test_one_row_for_each_setting(run: Run) -> None:
    status, out, err = run("plan", *RESTART)
    assert (status, err) == (0, "")
    headline, titles, *rows = out.splitlines()
    assert headline.startswith("3 members, 12 partitions, 300 s: 3 closed, 3 started; 3 runs in ")
    assert titles.split()[:2] == ["Setting", "Rebalances"]
    assert [row.split()[0] for row in rows] == ["eager", "static", "cooperative", "consumer"]
    assert rows[1].split()[1:7] == ["0", "0", "1.668%", "60.0", "5.004", "s"]


def test_json_has_each_setting_with_its_figures(run: Run) -> None:
    status, out, _ = run(
        "plan", *RESTART, "--json", "--setting", "static,session=20s", "--setting", "consumer"
    )
    assert status == 0
    shown = json.loads(out)
    assert [each["name"] for each in shown["settings"]] == ["static,session=20s", "consumer"]
    first = shown["settings"][0]
    assert (first["session_ms"], first["protocol"], first["is_static"]) == (20_000, "eager", True)
    assert first["figures"]["rebalances"] == 0
    assert [sum(end - begin for begin, end in run) for run in first["unowned"]] == [60_048] * 3
    assert first["figures"]["unowned_ms"] == 60_048


def test_common_options_count_for_all_settings_that_do_not_differ(run: Run) -> None:
    _, out, _ = run(
        "plan", *RESTART, "--json", "--session", "30s", "--setting", "eager", "--setting", "eager,session=9s"
    )
    assert [each["session_ms"] for each in json.loads(out)["settings"]] == [30_000, 9_000]


def test_a_client_is_compared_with_what_it_serves(run: Run) -> None:
    _, out, _ = run("plan", *RESTART, "--client", "kafka-python")
    assert [row.split()[0] for row in out.splitlines()[2:]] == ["eager", "static"]


WRONG = {
    "nothing happens to the group: use --rolling-restart 10s, --scale 3:6@10m or --crash 1@5m": (),
    "--setting 'lazy' begins with 'lazy': use eager, cooperative, consumer or static": (
        *RESTART,
        "--setting",
        "lazy",
    ),
    "--setting 'eager,sesion=9s' has 'sesion=9s': did you mean session=?": (
        *RESTART,
        "--setting",
        "eager,sesion=9s",
    ),
    "--setting 'eager,session=9', session: '9' is no duration: write 90s, 5m, 1h30m, 8d or 250ms": (
        *RESTART,
        "--setting",
        "eager,session=9",
    ),
    "--setting 'eager,client=sarama', client: 'sarama' is none of kafka-clients, kafka-python, librdkafka": (
        *RESTART,
        "--setting",
        "eager,client=sarama",
    ),
    "--setting 'consumer,client=kafka-python': client=kafka-python has no consumer members: "
    "use kafka-clients or librdkafka": (*RESTART, "--setting", "consumer,client=kafka-python"),
    "--setting 'eager,assignor=uniform': assignor=uniform is none of eager members: "
    "use range or roundrobin": (
        *RESTART,
        "--setting",
        "eager,assignor=uniform",
    ),
    "--setting 'eager,session=4s': a session of 4000 ms is too short for heartbeats every 3000 ms: "
    "use session=9000ms or more, or a shorter heartbeat": (*RESTART, "--setting", "eager,session=4s"),
    "--setting 'eager,heartbeat=0s': heartbeat=0ms is too short: use 100ms or more": (
        *RESTART,
        "--setting",
        "eager,heartbeat=0s",
    ),
    "--setting 'eager': processing takes 300000 ms, and max-poll=300000ms would end the member: "
    "use a longer max-poll": (*RESTART, "--setting", "eager", "--processing", "5m"),
    "--rolling-restart '0s' leaves no time: write 10s, or 10s@5m": ("--rolling-restart", "0s"),
    "--scale '4' is not [FROM:]TO@AT: write 10@5m, or 4:10@5m": ("--scale", "4"),
    "5:9 begins with 5 members, but there are 3": ("--scale", "5:9@5m"),
    "--crash 'one@5m' is not N@AT[+BACK]: write 1@5m, or 1@5m+30s": ("--crash", "one@5m"),
    "9 members cannot crash where there are 3": ("--crash", "9@5m"),
    "something is to happen after 7200 s, but --duration is 3600 s: make it longer": ("--crash", "1@2h"),
}


@pytest.mark.parametrize(("says", "given"), WRONG.items(), ids=range(len(WRONG)))
def test_wrong_options_are_named_in_one_line(run: Run, says: str, given: tuple[str, ...]) -> None:
    assert run("plan", *given) == (2, "", f"kshim: {says}\n")


def test_a_plot_is_saved(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    assert run("plan", *RESTART, "--setting", "static", "--plot", str(file))[0] == 0
    assert file.read_text().startswith("<svg ")


def test_a_plot_that_cannot_be_saved(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "none" / "plan.svg"
    status, _, err = run("plan", *RESTART, "--setting", "static", "--plot", str(file))
    assert status == 2
    assert err == f"kshim: --plot {file}: No such file or directory; name a file that can be written\n"
