"""Tests that show what a release of Apache Kafka changed: they fail if an older one is the judge.

docs/kafka-4.4.md describes the changes.
"""

from __future__ import annotations

from collections.abc import Mapping

STORY = "stories/test_admin.py::test_both_answer_the_same"
CHANGES: Mapping[str, Mapping[str, str]] = {
    "4.3": {
        f"{STORY}[bad_configs_of_brokers-": "texts, and unknown names",
        f"{STORY}[configs_put-": "the text that lists fixed configs",
    },
    "4.4": {
        f"{STORY}[configs_of_brokers-": "lists that name an item twice",
        f"{STORY}[loggers-": "unknown operations on loggers",
        "test_apis.py::test_both_announce_the_same_versions": "newer versions of requests",
        "test_definitions.py::test_fields_and_versions[ApiVersions": "ApiVersions v5 (KIP-1242)",
        "test_definitions.py::test_fields_and_versions[DeleteGroups": "DeleteGroups v3",
        "test_definitions.py::test_fields_and_versions[StreamsGroupHeartbeat": "StreamsGroupHeartbeat v1",
        "test_definitions.py::test_fields_and_versions[TxnOffsetCommit": "TxnOffsetCommit v6 (KIP-1319)",
        "test_definitions.py::test_fields_and_versions[UnregisterController": "UnregisterController",
    },
}
"""For each release, how the ids of tests begin that need it, and what it changed."""


def needs_newer(test_id: str, release: str) -> str:
    """The change of a newer release that a test shows; "" if `release` answers the test as kshim does.

    test_id: without the folder of these tests.
    """
    for newer, changes in CHANGES.items():
        if release < newer:
            for beginning, change in changes.items():
                if test_id.startswith(beginning):
                    return f"Kafka {newer}: {change}"
    return ""
