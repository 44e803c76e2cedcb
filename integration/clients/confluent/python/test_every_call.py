"""Every public method of the installed clients is tried: a new one fails here until a test calls it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

SOURCES = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
CALLED = set(re.findall(r"\b(\w+)\.(\w+)\(", SOURCES))
NAMES = {AdminClient: {"admin"}, Consumer: {"consumer"}, Producer: {"producer"}}
"""The names that the tests use for the clients."""
LOCAL = {"set_sasl_credentials"}
"""For SASL, which these servers do not use; nothing is sent."""


@pytest.mark.parametrize("kind", NAMES, ids=lambda kind: kind.__name__)
def test_every_call_is_tried(kind: type) -> None:
    public = {name for name in dir(kind) if not name.startswith("_")}
    called = {method for name, method in CALLED if name in NAMES[kind]}
    assert public - called - LOCAL == set(), "not tried"
