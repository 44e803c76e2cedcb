"""Settings of all tests: on a busy machine, one example of a property may take its time."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# Assertions in modules that tests share explain themselves, as those in test modules do.
pytest.register_assert_rewrite("tests.storage", "tests.upstream")
