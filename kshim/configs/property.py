"""One row of a table of properties: a dataclass field with a parser, a meaning, and Kafka's default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

T = TypeVar("T")


def property_field(default: T, parse: Callable[[str], object], doc: str, kafka_default: str = "") -> T:
    """A dataclass field. kafka_default: Apache Kafka's default, if kshim's is another."""
    return field(default=default, metadata={"parse": parse, "doc": doc, "kafka_default": kafka_default})
