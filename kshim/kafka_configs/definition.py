"""One config: its type, its default and what is legal, with faults told in Kafka's words.

A config is text wherever it is kept or sent; `parse` says what a text means, `canonical` how Kafka spells
that again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import Any

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
_LIMITS = {"SHORT": 2**15 - 1, "INT": INT_MAX, "LONG": LONG_MAX}

Check = Callable[[str, Any], str]
"""What is wrong with a parsed value of the config of that name; "" if nothing."""


class ConfigType(IntEnum):
    """The types of DescribeConfigs (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


def any_value(name: str, value: Any) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One config. default: None where Kafka's is null."""

    name: str
    type: ConfigType
    default: str | None
    check: Check = any_value

    def parse(self, text: str) -> Any:
        """The value that `text` means. Raises ValueError, in Kafka's words."""
        text = text.strip()
        match self.type:
            case ConfigType.BOOLEAN:
                if text.lower() not in ("true", "false"):
                    raise ValueError("Expected value to be either true or false")
                return text.lower() == "true"
            case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
                limit = _LIMITS[self.type.name]
                if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not -limit - 1 <= int(text) <= limit:
                    raise ValueError(f"Not a number of type {self.type.name}")
                return int(text)
            case ConfigType.DOUBLE:
                if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
                    raise ValueError(f"Not a number of type {self.type.name}")
                return float(text)
            case ConfigType.LIST:
                return [item.strip() for item in text.split(",")] if text else []
            case _:
                return text

    def fault(self, text: str) -> str:
        """What is wrong with `text`, "" if nothing."""
        try:
            value = self.parse(text)
        except ValueError as error:
            return invalid(self.name, text.strip(), str(error))
        return self.check(self.name, value)

    def canonical(self, text: str) -> str:
        """A legal `text` as Kafka prints what it means: "TRUE" is "true", "a, b" is "a,b"."""
        value = self.parse(text)
        match value:
            case bool():
                return str(value).lower()
            case float():
                return _java_double(value)
            case list():
                return ",".join(value)
            case _:
                return str(value)


def _java_double(value: float) -> str:
    """As Java's Double.toString: an exponent below 0.001 and from ten million on."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *others = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(others) or '0'}E{int(exponent) + len(others)}"


def invalid(name: str, value: Any, fault: str) -> str:
    return f"Invalid value {value} for configuration {name}: {fault}"


def between(low: float, high: float | None = None) -> Check:
    def check(name: str, value: Any) -> str:
        if value < low:
            return invalid(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            return invalid(name, value, f"Value must be no more than {high}")
        return ""

    return check


def one_of(*choices: str) -> Check:
    """Of a list, every item must be one of them."""

    def check(name: str, value: Any) -> str:
        values = value if isinstance(value, list) else [value]
        if isinstance(value, list) and "" in value:
            return f"Configuration '{name}' values must not be empty."
        wrong = next((v for v in values if v not in choices), None)
        return "" if wrong is None else invalid(name, wrong, f"String must be one of: {', '.join(choices)}")

    return check


def gzip_level(name: str, level: Any) -> str:
    if level == -1 or 1 <= level <= 9:
        return ""
    return invalid(name, level, "Value must be between 1 and 9 or equal to -1")


def throttled_replicas(name: str, replicas: Any) -> str:
    if replicas == ["*"] or all(re.fullmatch(r"[0-9]+:[0-9]+", replica) for replica in replicas):
        return ""
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    fault = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
    return invalid(name, f"[{', '.join(replicas)}]", fault)
