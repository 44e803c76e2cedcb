"""Tests that run against a given cluster are skipped where only kshim can do what they ask for."""

from __future__ import annotations

from unittest import SkipTest

import pytest

from kshim.control.client import ControlError
from kshim.testing.asynchronous import AsyncKshim
from kshim.testing.given import MAY_RESET, GivenCluster
from kshim.testing.running import Kshim

CLUSTER = GivenCluster("127.0.0.1:1")
OF_KSHIM = sorted(name for name in vars(Kshim) if not name.startswith("_"))


@pytest.mark.parametrize("name", OF_KSHIM)
def test_what_only_kshim_has_skips_the_test_by_name(name: str) -> None:
    if hasattr(GivenCluster, name):
        return
    with pytest.raises(
        SkipTest, match=f"kshim.{name}: only kshim has it, and the tests run against 127.0.0.1:1"
    ):
        getattr(CLUSTER, name)


def test_a_name_that_nobody_has_is_a_mistake() -> None:
    with pytest.raises(AttributeError, match="'GivenCluster' object has no attribute 'produze'"):
        _ = CLUSTER.produze
    with pytest.raises(AttributeError, match="_control"):
        _ = CLUSTER._control


def test_a_group_is_steered_over_kafka_s_own_protocol() -> None:
    with pytest.raises(ControlError, match=r"broker 127\.0\.0\.1:1 cannot be reached"):
        CLUSTER.set_offsets("g", {("t", 0): 1})


def test_nothing_is_deleted_unless_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (MAY_RESET, "PYTEST_XDIST_WORKER_COUNT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SkipTest, match=r"would delete all topics and groups of .*; --kshim-may-reset"):
        CLUSTER.reset()


def test_coroutines_are_skipped_too() -> None:
    with pytest.raises(SkipTest, match=r"kshim\.advance"):
        AsyncKshim(CLUSTER).advance(minutes=1).send(None)  # type: ignore[arg-type]
