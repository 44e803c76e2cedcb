import pytest


@pytest.fixture(scope="session")
def kshim_records():
    return {"prices": [("apple", "3"), ("pear", "4")]}
