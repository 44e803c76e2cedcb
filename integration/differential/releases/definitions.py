"""The definitions of messages in two `kafka-clients` jars, compared field by field."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from tests.schemas.definitions import read

FOLDER = PurePosixPath("common/message")
PROPERTIES = ("type", "versions", "nullableVersions", "taggedVersions", "tag", "default")


def definitions(class_path: str) -> dict[str, dict[str, Any]]:
    """The definition of each request and response, by its name."""
    (jar,) = Path(class_path).parent.glob("kafka-clients-*.jar")
    with zipfile.ZipFile(jar) as opened:
        paths = map(PurePosixPath, opened.namelist())
        return {
            path.stem: read(opened.read(str(path)).decode())
            for path in paths
            if path.parent == FOLDER and path.stem.endswith(("Request", "Response"))
        }


def changes(old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """A line for each difference."""
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield f"{name} (API {old[name].get('apiKey')}) is gone"
        elif name not in old:
            yield f"{name} (API {new[name].get('apiKey')}) is new, versions {new[name]['validVersions']}"
        else:
            yield from _changes_of_one(name, old[name], new[name])


def _changes_of_one(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for each in ("validVersions", "flexibleVersions", "latestVersionUnstable"):
        if old.get(each) != new.get(each):
            yield f"{name}: {each} {old.get(each)} → {new.get(each)}"
    before, after = dict(_fields(old["fields"])), dict(_fields(new["fields"]))
    for path in before.keys() - after.keys():
        yield f"{name}: {path} is gone"
    for path, properties in after.items():
        if path not in before:
            yield f"{name}: {path} is new: {_told(properties)}"
        elif properties != before[path]:
            yield f"{name}: {path} {_told(before[path])} → {_told(properties)}"


def _fields(fields: list[dict[str, Any]], parent: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """The properties of each field, by its path."""
    for field in fields:
        path = f"{parent}{field['name']}"
        yield path, {each: str(field[each]) for each in PROPERTIES if each in field}
        yield from _fields(field.get("fields", []), f"{path}.")


def _told(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in properties.items())
