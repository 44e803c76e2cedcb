"""A fresh history for every test."""

import pytest

from tests.coordination.groups.history import History


@pytest.fixture
def history() -> History:
    return History()
