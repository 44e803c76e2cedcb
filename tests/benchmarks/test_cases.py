"""The table of cases names functions that are there, and the command says in a line what it cannot follow."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import benchmarks
from benchmarks.__main__ import main
from benchmarks.cases import BOTH, CASES, COMPARED, OWN_SERVERS, PASSED, Case
from benchmarks.running import Plan, turns
from benchmarks.servers import APACHE_KAFKA, KSHIM, MEMORY, UPSTREAM, Side

ROOT = Path(benchmarks.__file__).parent
COMMIT, OS, PEER = Side(KSHIM, "commit"), Side(KSHIM, "os"), Side(APACHE_KAFKA)
IN_MEMORY = Side(KSHIM, MEMORY)


def functions(module: str) -> set[str]:
    """The names of a module's functions. The module is not imported: not every client is installed here."""
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_case_has_a_function_and_loads(case: Case) -> None:
    module, _, name = case.function.partition(":")
    assert name in functions(module)
    assert case.loads
    assert case.summary


def test_what_prints_itself_runs_only_when_it_is_named() -> None:
    assert set(CASES) - set(COMPARED) == {name for name, case in CASES.items() if "alone." in case.function}


@pytest.mark.parametrize(
    ("policies", "asked", "sides"),
    [
        (BOTH, "", [COMMIT, OS, PEER]),
        (("commit",), "", [COMMIT, PEER]),
        (("commit",), "both", [COMMIT, OS, PEER]),
        (BOTH, "os", [OS, PEER]),
        (BOTH, "all", [COMMIT, OS, IN_MEMORY, PEER]),
        (("commit",), "all", [COMMIT, PEER]),
    ],
)
def test_kshim_flushes_as_the_case_says_or_as_the_user_asked(
    policies: tuple[str, ...], asked: str, sides: list[Side]
) -> None:
    case = Case("", "", flush=policies)
    assert Plan(APACHE_KAFKA, asked).sides(case) == sides
    assert Plan("", asked).sides(case) == sides[:-1]


def test_the_sides_take_turns_in_either_order() -> None:
    assert list(turns([COMMIT, PEER], 3)) == [COMMIT, PEER, PEER, COMMIT, COMMIT, PEER]


def test_in_front_of_an_upstream_kshim_is_compared_with_the_same_one() -> None:
    case = Case("", "", flush=BOTH)
    assert Plan(UPSTREAM).sides(case) == [Side(KSHIM, is_in_front=True), Side(UPSTREAM)]
    assert not OWN_SERVERS.intersection(PASSED)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    monkeypatch.setattr("sys.argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


def test_the_cases_are_listed_a_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--list") == 0
    listed = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in listed] == list(CASES)


def test_an_unknown_case_is_a_line_that_says_which_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "heartbeet", "start") == 2
    expected = f"benchmarks: there is no case 'heartbeet'; there are {', '.join(CASES)}\n"
    assert capsys.readouterr() == ("", expected)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--against", "kafka"], "--against kafka: expected apache-kafka, upstream or HOST:PORT"),
        (["--against", "upstream"], "--against upstream: name cases that use one server, not start"),
        (["--load", "x"], "start has no load 'x'; there are none"),
        (["--rounds", "0"], "Invalid value for '--rounds': 0 is not in the range x>=1."),
        (["--against", "a:1", "--plot", "x.gif"], "--plot x.gif: expected a name that ends in .svg or .png"),
    ],
)
def test_an_option_that_cannot_be_followed_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run(monkeypatch, "start", *arguments) == 2
    assert capsys.readouterr() == ("", f"benchmarks: {said}\n")


def test_a_case_and_a_picture_say_what_must_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("benchmarks.cases", "benchmarks.plotting"):
        monkeypatch.setattr(f"{module}.find_spec", lambda _: None)
    assert run(monkeypatch, "tail", "--against", "a:1", "--plot", "x.svg") == 2
    assert capsys.readouterr().err.splitlines() == [
        "benchmarks: tail needs confluent_kafka: pip install '.[benchmarks]'",
        "benchmarks: --plot needs matplotlib: pip install '.[benchmarks]'",
    ]
