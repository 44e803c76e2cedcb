"""The messages that kafka-python does not know match the definitions in Apache Kafka's own jar."""

from __future__ import annotations

import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from schemas.message import definition
from schemas.registry import MESSAGES
from tests.schemas.definitions import apache_rows, is_carried, our_rows, read, version_range

CLASSES = [cls for pair in MESSAGES.values() for cls in pair if not is_carried(cls.__name__)]


@cache
def apache(class_path: str, name: str) -> dict[str, Any]:
    (jar,) = Path(class_path).parent.glob("kafka-clients-*.jar")
    with zipfile.ZipFile(jar) as opened:
        return read(opened.read(f"common/message/{name}.json").decode())


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: str(cls.__name__))
def test_fields_and_versions(cls: Any, class_path: str) -> None:
    theirs, versions = apache(class_path, cls.__name__), tuple(definition(cls).versions or ())
    assert definition(cls).api_key == theirs["apiKey"]
    last = int(theirs["validVersions"].rpartition("-")[2])
    assert versions == tuple(version_range(theirs["validVersions"], last))
    flexible = version_range(theirs["flexibleVersions"], last)
    assert [it for it in versions if definition(cls).is_flexible(it)] == [
        it for it in versions if it in flexible
    ]
    assert our_rows(cls, versions) == apache_rows(theirs["fields"], versions)
