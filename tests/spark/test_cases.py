"""Every case of Spark's own suites has a test, and every test that is named is there."""

from integration.spark.cases import CASES, tests


def test_every_case_has_its_tests() -> None:
    named = {name for cases in CASES.values() for names in cases.values() for name in names}
    assert named <= tests().keys()
    assert all(names for cases in CASES.values() for names in cases.values())
