"""Every case of Spark's own suites has a test, and every named test exists."""

from integration.spark import cases


def test_every_case_has_its_tests() -> None:
    named = {name for of_suite in cases.CASES.values() for names in of_suite.values() for name in names}
    assert named <= cases.tests().keys()
    assert all(names for of_suite in cases.CASES.values() for names in of_suite.values())
