"""Apache Kafka's own message definitions, as kafka-python carries them in its package data.

A definition and a class of `schemas` are both turned into `Row`s, one per field, so that a test can compare
them whole.
"""

import importlib.resources
import json
import re
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from schemas import primitives
from schemas.message import definition

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # from how kafka-python reads these files
    import kafka.protocol.schemas.resources as resources

IMPLICIT = {"bool": False, "string": "", "bytes": b"", "records": None, "uuid": UUID(int=0)}


@dataclass(frozen=True)
class Row:
    """One field of a structure: its name and type, and its properties in each version that has it."""

    name: str
    type: str
    default: Any
    nullable_in: tuple[int, ...]
    versions: tuple[int, ...]
    tag: int | None
    fields: tuple["Row", ...]


CHANGED_SINCE = ("ApiVersions", "DeleteGroups", "TxnOffsetCommit")
"""Messages whose definitions kafka-python has as they were before Kafka 4.4."""


def is_carried(name: str) -> bool:
    """True if kafka-python has the definition. `integration/differential` has Kafka's own for the others."""
    if name.startswith(CHANGED_SINCE):
        return False
    return importlib.resources.files(resources).joinpath(f"{name}.json").is_file()


@cache
def apache(name: str) -> dict[str, Any]:
    """The definition of a message, with its shared structures put in place."""
    return read(importlib.resources.files(resources).joinpath(f"{name}.json").read_text())


def read(text: str) -> dict[str, Any]:
    """A definition as Kafka writes it, with its shared structures put in place."""
    found: dict[str, Any] = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    shared = {it["name"]: it["fields"] for it in found.get("commonStructs", [])}
    _expand(found.setdefault("fields", []), shared)  # a message that is gone has none
    return found


def _expand(fields: list[dict[str, Any]], shared: dict[str, Any]) -> None:
    for field in fields:
        name = field["type"].removeprefix("[]")
        if name in shared:
            field["fields"] = shared[name]
        _expand(field.get("fields", []), shared)


def version_range(text: str, last: int) -> range:
    """The range of "3+" (up to the last version), "3-5", "3" or "none"."""
    if text == "none":
        return range(0)
    low, _, high = text.partition("-")
    if text.endswith("+"):
        return range(int(text[:-1]), last + 1)
    return range(int(low), int(high or low) + 1)


def apache_rows(fields: list[dict[str, Any]], versions: tuple[int, ...]) -> tuple[Row, ...]:
    """The fields of a definition that exist in any of the versions."""
    rows = (_apache_row(field, versions) for field in fields)
    return tuple(row for row in rows if row.versions)


def _apache_row(field: dict[str, Any], versions: tuple[int, ...]) -> Row:
    def among(key: str, allowed: tuple[int, ...]) -> tuple[int, ...]:
        named = version_range(field.get(key, "none"), last=max(versions))
        return tuple(version for version in allowed if version in named)

    exists_in = among("versions", versions)
    tag = field.get("tag")
    assert tag is None or among("taggedVersions", exists_in) == exists_in, (
        "tagged only in some of its versions"
    )
    return Row(
        name=snake_case(field["name"]),
        type=field["type"],
        default=_apache_default(field),
        nullable_in=among("nullableVersions", exists_in),
        versions=exists_in,
        tag=tag,
        fields=apache_rows(field.get("fields", []), exists_in) if exists_in else (),
    )


def _apache_default(field: dict[str, Any]) -> Any:
    kind, text = field["type"], str(field.get("default", ""))
    if text == "null":
        return None
    if kind.startswith("[]"):
        return ()
    if "fields" in field:
        return "every field's own"
    if text == "":
        return IMPLICIT.get(kind, 0)
    if kind == "bool":
        return {"true": True, "false": False}[text.lower()]
    return text if kind == "string" else int(text, 0)


def snake_case(name: str) -> str:
    """ThrottleTimeMs -> throttle_time_ms."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def our_rows(cls: Any, versions: tuple[int, ...]) -> tuple[Row, ...]:
    """The fields of a class that exist in any of the versions."""
    return tuple(_our_row(field, versions) for field in definition(cls).fields)


def _our_row(field: Any, versions: tuple[int, ...]) -> Row:
    wrapped = isinstance(field.type, primitives.Array | primitives.Nullable)
    element = field.type.element if wrapped else field.type
    exists_in = tuple(version for version in versions if field.exists(version))
    default = field.default
    if isinstance(field.type, type) and default == field.type():
        default = "every field's own"
    return Row(
        name=field.name,
        type=_type_name(field.type),
        default=default,
        nullable_in=tuple(version for version in exists_in if _is_nullable(field, version)),
        versions=exists_in,
        tag=field.tag,
        fields=our_rows(element, exists_in) if isinstance(element, type) else (),
    )


def _is_nullable(field: Any, version: int) -> bool:
    if field.nullable_since is not None:
        return bool(version >= field.nullable_since)
    return isinstance(field.type, primitives.Nullable) or getattr(field.type, "is_nullable", False)


NAMES = {
    primitives.boolean: "bool",
    primitives.int8: "int8",
    primitives.int16: "int16",
    primitives.uint16: "uint16",
    primitives.int32: "int32",
    primitives.uint32: "uint32",
    primitives.int64: "int64",
    primitives.float64: "float64",
    primitives.uuid: "uuid",
}


def _type_name(wire: Any) -> str:
    if isinstance(wire, type):
        return str(definition(wire).name)
    if isinstance(wire, primitives.Nullable):
        return _type_name(wire.element)
    if isinstance(wire, primitives.Array):
        return f"[]{_type_name(wire.element)}"
    if isinstance(wire, primitives.Counted):
        return type(wire).__name__.lower()
    return NAMES[wire]
