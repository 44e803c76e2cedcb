"""The command line: what it prints; a user's error is one line and exit status 2. Nothing is served here."""

import itertools
import logging
import re
from pathlib import Path

import pytest

from kshim import __version__
from kshim.api.api_versions import REFUSED
from kshim.configs.config import PROPERTIES, Config
from kshim.configs.upstream import PROPERTIES as OF_UPSTREAM
from kshim.network.dispatch import API
from tests.cli.running import Run


@pytest.fixture
def kshim(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capsys)


def test_version(kshim: Run) -> None:
    assert kshim("--version") == (0, f"kshim {__version__}\n", "")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], ["serve", "--help"], ["apis", "-h"], ["config", "-h"]]
)
def test_help(kshim: Run, arguments: list[str]) -> None:
    status, out, err = kshim(*arguments)
    assert (status, err) == (0, "")
    assert out.startswith("Usage: kshim")


def test_the_help_of_serve_has_examples_and_defaults(kshim: Run) -> None:
    out = " ".join(kshim("serve", "--help")[1].split())
    for said in (
        "kshim serve --listen 127.0.0.1:0 --data-dir :memory:",
        "127.0.0.1:9092",
        "./kshim-data",
        "kshim ready",
    ):
        assert said in out


def test_serve_with_nothing_given(kshim: Run) -> None:
    assert kshim("serve") == (0, "", "")
    assert kshim.config == Config()


def test_options_win_over_set_and_set_over_the_file(kshim: Run, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nnode.id=2\nlisteners=PLAINTEXT://:2\nlog.dirs=/2\n", encoding="utf-8")
    status, out, err = kshim(
        "serve", "--config", str(file), "--set", "node.id=3", "--set", "log.dirs=/3", "--set", "node.id=4",
        "--listen", "[::1]:0", "--advertise", "kafka.example:9",
    )  # fmt: skip
    assert (status, out, err) == (0, "", "")
    assert kshim.config == Config(
        num_partitions=2,
        node_id=4,
        log_dirs="/3",
        listeners="[::1]:0",
        advertised_listeners="kafka.example:9",
    )


def test_a_property_without_effect_is_warned_of(kshim: Run, caplog: pytest.LogCaptureFixture) -> None:
    assert kshim("serve", "--set", "num.io.threads=8")[0] == 0
    assert caplog.record_tuples == [("kshim", logging.WARNING, "num.io.threads has no effect here")]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["serve", "--lisen", "x"], r"No such option '--lisen'.*--listen.*"),
        (["serv"], r"No such command 'serv'.*"),
        (["nonsense"], r"No such command 'nonsense'; expected one of serve, demo, .*"),
        (["topic", "lst"], r"No such command 'lst'.*list.*"),
        (
            ["cluster", "--data-dir", "d"],
            r"Missing command; expected one of describe, drain, .*",
        ),
        (
            ["apis", "--against", "4"],
            r"--against 4: expected a version of Apache Kafka that is known: 4\.2, 4\.3, 4\.4",
        ),
        (["serve", "extra"], r"Got unexpected extra argument.*extra.*"),
        (["serve", "--listen"], r"Option '--listen' requires an argument\."),
        (["serve", "--listen", "localhost"], r"--listen=localhost: expected HOST:PORT, as in .*"),
        (["serve", "--advertise", "a:b"], r"--advertise=a:b: expected HOST:PORT with a port .*"),
        (["serve", "--data-dir", ""], r"--data-dir=: expected one directory, or :memory:"),
        (["serve", "--set", "num.partitions"], r"--set num.partitions: expected KEY=VALUE, as in .*"),
        (
            ["serve", "--set", "num.partitions=none"],
            r"num.partitions=none: expected an integer of at least 1.*",
        ),
        (
            ["serve", "--set", "num.particles=1"],
            r"num.particles: no such property \(did you mean num.partitions\?\).*",
        ),
        (["serve", "--config", "/nonexistent"], r"--config /nonexistent: No such file or directory"),
        (
            ["serve", "--log-level", "loud"],
            r"Invalid value for '--log-level': 'loud' is not one of 'debug', .*",
        ),
    ],
)
def test_what_is_wrong_is_told_in_one_line(kshim: Run, arguments: list[str], told: str) -> None:
    status, out, err = kshim(*arguments)
    assert (status, out) == (2, "")
    assert re.fullmatch(f"kshim: {told}\n", err)
    assert kshim.config is None


def test_each_thing_that_is_wrong_has_its_line(kshim: Run) -> None:
    status, _, err = kshim("serve", "--set", "num.partitions=0", "--listen", "x")
    assert status == 2
    assert len(err.splitlines()) == 2


def test_a_file_that_is_no_text(kshim: Run, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(b"a=\xff")
    assert kshim("serve", "--config", str(file)) == (
        2,
        "",
        f"kshim: --config {file}: expected UTF-8 text, but byte 2 is not\n",
    )


def test_apis_lists_what_is_served(kshim: Run) -> None:
    status, out, err = kshim("apis")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) == 1 + len(API.keys() - REFUSED)
    assert lines[0].split() == ["Key", "API", "Versions"]
    assert ["18", "ApiVersions", "0", "-", "5"] in [line.split() for line in lines]


def test_apis_lists_what_only_apache_kafka_serves(kshim: Run) -> None:
    status, out, err = kshim("apis", "--against", "4.2")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert re.fullmatch(r"Key +API +Versions +Why it is not served", lines[0])
    assert re.search(r"^76 +ShareGroupHeartbeat +1 - 1 +share groups ", out, re.MULTILINE)
    assert "GetTelemetrySubscriptions (71) and PushTelemetry (72)" in lines[-2]
    assert {int(line.split()[0]) for line in lines[1:-3]} & set(API) == REFUSED


def test_config_lists_every_property(kshim: Run) -> None:
    status, out, err = kshim("config")
    assert (status, err) == (0, "")
    sections = [each.splitlines() for each in out.rstrip().split("\n\n")]
    assert [lines[0] for lines in sections][:3] == ["Listeners and connections", "TLS", "SASL"]
    names = [[line.split()[0] for line in lines[2:]] for lines in sections]
    assert all(each == sorted(each) for each in names)
    assert sorted(itertools.chain(*names)) == sorted([*PROPERTIES, *OF_UPSTREAM])
    assert "Others" not in out
    assert re.search(r"^group.initial.rebalance.delay.ms +0 \(Kafka: 3000\) ", out, re.MULTILINE)


def test_config_shows_one_property(kshim: Run) -> None:
    status, out, err = kshim("config", "group.initial.rebalance.delay.ms")
    assert (status, err) == (0, "")
    assert out.startswith("group.initial.rebalance.delay.ms\n  ")
    assert "  Default: 0\n  Default of Apache Kafka: 3000\n  Section: Groups\n" in out


def test_config_lists_the_properties_that_are_like_a_name(kshim: Run) -> None:
    status, out, _ = kshim("config", "transaction.state")
    assert status == 0
    assert len(re.findall(r"^transaction\.state\.", out, re.MULTILINE)) == 3
    assert "num.partitions" in kshim("config", "partition")[1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "num.particles",
            "num.particles: no such property (did you mean num.partitions?); `kshim config` lists",
        ),
        ("xyz", "xyz: no such property; `kshim config` lists"),
        ("log.segment.bytes", "log.segment.bytes is a property of Apache Kafka without effect in kshim; "),
    ],
)
def test_config_does_not_know_a_property(kshim: Run, name: str, said: str) -> None:
    status, out, err = kshim("config", name)
    assert (status, out) == (2, "")
    assert err.startswith(f"kshim: {said}")


def test_tables_are_drawn_for_a_terminal(kshim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = kshim("apis")[1]
    assert out.startswith("┏")
    assert "│ JoinGroup " in out
