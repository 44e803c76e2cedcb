"""The list of cases: each one has a test, and a case without one is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.coordination.groups import cases

TWO_TESTS = '''
class TestOne:
    """[1]"""

    def test_it(self) -> None:
        """[2] [3]: with more words, and [2] once more."""

    def helper(self) -> None:
        """[4]"""


def test_two() -> None:
    """[167] is no case."""
'''


def test_there_are_166() -> None:
    assert list(cases.CASES) == list(range(1, 167))
    assert len(set(cases.CASES.values())) == 166


def test_every_case_has_a_test() -> None:
    found = cases.carriers()
    assert cases.missing(found) == []
    assert cases.unknown(found) == []


@pytest.fixture
def found(tmp_path: Path) -> dict[int, list[str]]:
    tests = tmp_path / "tests" / "deeper"
    tests.mkdir(parents=True)
    (tests / "test_some.py").write_text(TWO_TESTS)
    (tests / "history.py").write_text(TWO_TESTS)
    return cases.carriers(tests.parent)


def test_tests_name_their_cases_in_their_docstrings(found: dict[int, list[str]]) -> None:
    name = "tests/deeper/test_some.py"
    assert found == {
        1: [f"{name}::TestOne"],
        2: [f"{name}::TestOne::test_it"],
        3: [f"{name}::TestOne::test_it"],
        167: [f"{name}::test_two"],
    }


def test_what_is_missing_and_what_is_no_case(
    found: dict[int, list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cases.missing(found) == list(range(4, 167))
    assert cases.unknown(found) == [167]
    monkeypatch.setattr(cases, "carriers", lambda: found)
    assert cases.main([]) == 1
    told = capsys.readouterr().out
    assert "   4 Before v4 a member is admitted at once, and leads\n       NO TEST\n" in told
    assert "3 of 166 cases have a test" in told
    assert "test_two: there is no case 167" in told


def test_all_is_well(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cases, "carriers", lambda: {number: [f"t{number}"] for number in cases.CASES})
    assert cases.main(["53"]) == 0
    assert capsys.readouterr().out == (
        "  53 Its return cannot be written\n       t53\n\n166 of 166 cases have a test\n"
    )


@pytest.mark.parametrize("fails", [False, True])
def test_the_tests_of_cases_can_be_run(
    fails: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []

    def run(arguments: list[str]) -> int:
        ran.append(arguments)
        return int(fails)

    monkeypatch.setattr(cases, "carriers", lambda: {number: ["same", f"t{number}"] for number in cases.CASES})
    monkeypatch.setattr(pytest, "main", run)
    assert cases.main(["--run", "53", "64"]) == int(fails)
    assert ran == [["-q", "same", "t53", "t64"]]


def test_a_number_that_no_case_has(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cases.main(["200"])
    assert caught.value.code == 2
    assert "there is no case 200: they are 1 to 166" in capsys.readouterr().err
