"""`kshim torture` as a user has it: verdicts, pages, and one line for whatever cannot be judged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from integration.support.server import COMMAND, HEEDS_SIGINT, run_to_end
from integration.torture.playing import program, tortured

pytestmark = pytest.mark.kshim_only("it starts kshim")

SHORT = ("--for", "3s", "--instances", "2", "-q")
COMMIT_FIRST = program("kafka_python", "commit-first")
MENDED = program("kafka_python", "mended")


@pytest.mark.few
def test_a_broken_program_is_found_with_the_life_of_a_record_and_a_page(tmp_path: Path) -> None:
    options = (*SHORT, "--report", "--seed", "1", "--faults", "kill", "--runs", "5")
    done = tortured(COMMIT_FIRST, *options, "--page", str(tmp_path / "page.html"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "at-least-once is broken: " in done.stdout
    story = done.stdout[done.stdout.index("lost: never processed") :].split("\n\n")[0]
    for moment in ("produced", "fetched by c", "committed by c", "was killed", "nobody had processed it"):
        assert moment in story
    assert "repeat it with --seed " in done.stdout
    page = (tmp_path / "page.html").read_text()
    assert "at-least-once is broken" in page
    assert "was killed" in page


@pytest.mark.few
def test_the_mended_program_passes() -> None:
    done = tortured(MENDED, *SHORT, "--report", "--seed", "1")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "at-least-once holds, for " in done.stdout


def test_offsets_alone_judge_a_program(tmp_path: Path) -> None:
    done = tortured(MENDED, *SHORT, "--seed", "2", "--save-schedule", str(tmp_path / "s.json"))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    saved = json.loads((tmp_path / "s.json").read_text())
    assert (saved["seed"], saved["instances"]) == (2, 2)
    again = tortured(MENDED, "-q", "--schedule", str(tmp_path / "s.json"))
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.splitlines()[0] == done.stdout.splitlines()[0]


def test_a_failing_schedule_is_made_smaller(tmp_path: Path) -> None:
    schedule = {
        "seed": 0,
        "instances": 2,
        "duration_ms": 3000,
        "events": [
            {"at_ms": 300, "fault": "rebalance"},
            {"at_ms": 1000, "fault": "kill", "instance": 1, "lasts_ms": 300, "choice": 1},
            {"at_ms": 1000, "fault": "kill", "instance": 2, "lasts_ms": 300, "choice": 1},
            {"at_ms": 2000, "fault": "leader"},
        ],
    }
    (tmp_path / "s.json").write_text(json.dumps(schedule))
    options = ("-q", "--report", "--schedule", str(tmp_path / "s.json"), "--shrink")
    done = tortured(COMMIT_FIRST, *options, "--save-schedule", str(tmp_path / "small.json"))
    assert done.returncode == 1, done.stdout + done.stderr
    smallest = json.loads((tmp_path / "small.json").read_text())["events"]
    assert {event["fault"] for event in smallest} == {"kill"}
    faults = "1 fault" if len(smallest) == 1 else "2 faults"
    assert f"a smallest schedule that breaks it has {faults}:" in done.stdout


@pytest.mark.few
def test_every_fault_is_listed_with_the_bug_it_finds() -> None:
    listed = run_to_end("torture", "--list", cwd=Path.cwd())
    assert listed.returncode == 0
    assert "commit-lost" in listed.stdout
    assert "auto.offset.reset=latest" in listed.stdout


@pytest.mark.few
@pytest.mark.parametrize(
    ("options", "command", "said"),
    [
        ((), [], "name the program to torture after --"),
        (("--report", "--output", "o"), ["true"], "give either --report or --output TOPIC"),
        (("--promise", "exactly-once"), ["true"], "committed offsets do not show exactly-once"),
        (("--promise", "exactly-once", "--report"), ["true"], "cannot be taken back"),
        (("--no-group",), ["true"], "a program without a group commits no offsets"),
        (("--no-group", "--report", "--faults", "join"), ["true"], "the program joins no group"),
        (("--value", "$order"), ["true"], "has $order: only $number and $key are known"),
        (("--settle", "1s"), ["true"], "--settle has to be 2 s or more"),
        (("--faults", "flod"), ["true"], "no fault is called 'flod'"),
        (("--faults", "partitions", "--in-order", "--report"), ["true"], "no program could keep their order"),
        (("--faults", "broker", "--brokers", "1"), ["true"], "nobody could reach the group"),
        (("--pointer", "number", "--output", "o"), ["true"], "is no JSON pointer"),
        (("--set", "x"), ["true"], "is no KEY=VALUE"),
        (("--for", "0s"), ["true"], "a run has to be disturbed for 1 s or more"),
        (("--page", "nowhere/story.html"), ["true"], "there is no directory nowhere for story.html"),
        (("--topic", "a topic"), ["true"], "the server refused a step: create topic a topic: INVALID_TOPIC"),
        (("--set", "num.partitions=many"), ["true"], "num.partitions"),
        ((), ["no-such-program"], "cannot run no-such-program: No such file or directory"),
        ((), ["true"], "c1 ended with status 0 before it had any partition"),
    ],
)
def test_what_cannot_be_judged_is_one_line(options: tuple[str, ...], command: list[str], said: str) -> None:
    done = tortured(command, *options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert said in line


def test_a_program_that_fails_at_once_is_quoted() -> None:
    done = tortured([sys.executable, "-c", "raise ValueError('no settings')"], "--report")
    assert done.returncode == 2
    assert "c1 ended with status 1 before it had any partition" in done.stderr
    assert "it said: ValueError: no settings" in done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("another-group", "the program is in group another, not in KSHIM_GROUP, which is torture"),
        ("another-topic", "has no partition of input after 20 s: does the program subscribe to KSHIM_TOPIC?"),
        ("no-subscription", "the program connects, but never joins group torture"),
    ],
)
def test_a_program_that_ignores_its_variables(name: str, said: str) -> None:
    done = tortured(program("kafka_python", name), "--report")
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--report",), "the program printed no line 'processed TOPIC PARTITION OFFSET'"),
        (("--output", "out"), "the program wrote nothing to out, which is in KSHIM_OUTPUT"),
    ],
)
def test_a_program_that_leaves_nothing_to_judge(options: tuple[str, ...], said: str) -> None:
    done = tortured(program("kafka_python", "silent"), *SHORT, *options, "--faults", "rebalance")
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.few
def test_ctrl_c_ends_the_instances_and_keeps_the_story(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    process = subprocess.Popen(
        [*HEEDS_SIGINT, *COMMAND, "torture", "--report", "--for", "60s", "--page", str(page), "--", *MENDED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"KSHIM_MUSEUM_PIDS": str(tmp_path)},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "all instances have joined" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, out + err
    assert err == ""
    assert "the run was interrupted" in page.read_text()
    assert "interrupted, so this is no verdict" in page.read_text()
    assert "holds, for" not in page.read_text()
    pids = [int(each.name) for each in tmp_path.iterdir() if each.name.isdecimal()]
    assert len(pids) == 3
    end_s = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < end_s, "an instance outlived the torture"
        time.sleep(0.05)
