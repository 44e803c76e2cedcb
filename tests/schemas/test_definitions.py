"""Every message matches Apache Kafka's own definition, field by field and version by version."""

import sys
from typing import Any

import pytest

from schemas.api_key import ApiKey
from schemas.message import definition
from schemas.registry import MESSAGES, VERSIONS
from tests.schemas.definitions import apache, apache_rows, is_carried, our_rows, version_range
from tests.schemas.strategies import message_versions

CLASSES = [cls for pair in MESSAGES.values() for cls in pair]
CARRIED = [cls for cls in CLASSES if is_carried(cls.__name__)]
UNSTABLE = {
    ApiKey.INIT_PRODUCER_ID: 6
}  # defined in Kafka 4.4, which serves them only when its own tests ask for it


def names(cls: Any) -> str:
    return str(cls.__name__)


def api_name(key: ApiKey) -> str:
    """INIT_PRODUCER_ID -> InitProducerId."""
    return "".join(word.title() for word in key.name.split("_"))


def test_every_message_class_is_registered() -> None:
    found = {cls for cls, _ in message_versions() if definition(cls).api_key is not None}
    assert found == set(CLASSES)


@pytest.mark.parametrize("key", MESSAGES, ids=api_name)
def test_request_and_response_belong_together(key: ApiKey) -> None:
    request, response = MESSAGES[key]
    assert [request.__name__, response.__name__] == [f"{api_name(key)}Request", f"{api_name(key)}Response"]
    assert definition(request).versions == definition(response).versions == VERSIONS[key]
    assert definition(request).flexible == definition(response).flexible


@pytest.mark.parametrize("cls", CARRIED, ids=names)
def test_api_key_and_versions(cls: Any) -> None:
    ours, theirs = definition(cls), apache(cls.__name__)
    assert ours.api_key == theirs["apiKey"]
    first, _, last = theirs["validVersions"].partition("-")
    first, last = int(first), int(last or first)
    if theirs["apiKey"] in UNSTABLE:
        assert last == UNSTABLE[ApiKey(theirs["apiKey"])]
        last -= 1
    assert ours.versions == range(first, last + 1)
    flexible = version_range(theirs["flexibleVersions"], last)
    assert [it for it in ours.versions if ours.is_flexible(it)] == [
        it for it in ours.versions if it in flexible
    ]


def test_only_unstable_versions_are_left_out() -> None:
    requests = [
        (key, apache(request.__name__)) for key, (request, _) in MESSAGES.items() if request in CARRIED
    ]
    assert {key for key, theirs in requests if theirs.get("latestVersionUnstable", False)} == set(UNSTABLE)


@pytest.mark.parametrize("cls", CARRIED, ids=names)
def test_fields(cls: Any) -> None:
    versions = tuple(definition(cls).versions or ())
    assert our_rows(cls, versions) == apache_rows(apache(cls.__name__)["fields"], versions)


@pytest.mark.parametrize("cls", CLASSES, ids=names)
def test_the_module_says_what_each_version_brought(cls: Any) -> None:
    doc = " ".join(str(sys.modules[cls.__module__].__doc__).split())
    ours: Any = definition(cls)
    assert doc.startswith(f"{api_name(ours.api_key)} ({ours.api_key:d}): ")
    changes = {version for it in all_fields(cls) for version in (it.since, it.until + 1)} | {ours.flexible}
    later = [version for version in ours.versions[1:] if version in changes]
    assert [version for version in later if f"v{version} " not in doc] == []


def all_fields(cls: Any) -> list[Any]:
    """The fields of a class and of every structure inside it."""
    found = []
    for field in definition(cls).fields:
        element = getattr(field.type, "element", field.type)
        found += [field, *(all_fields(element) if isinstance(element, type) else [])]
    return found
