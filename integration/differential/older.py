"""Tests that show what a release of Apache Kafka changed: they fail if an older one is the judge.

docs/kafka-4.4.md describes the changes. Releases are no simple sequence: 4.2.2 has some that 4.3.1 lacks.
"""

from __future__ import annotations

from collections.abc import Mapping

STORY = "stories/test_admin.py::test_both_answer_the_same"
FIELDS = "test_definitions.py::test_fields_and_versions"
SINCE_4_4 = {
    "acls/test_stories.py::test_both_answer_alike": "ACLs with an empty host",
    f"{STORY}[bad_configs_of_groups-": "new configs of groups",
    f"{STORY}[bad_configs_of_topics-": "new configs of topics",
    f"{STORY}[bad_quotas-": "quotas that are no finite numbers",
    f"{STORY}[configs_of_brokers-": "lists that name an item twice",
    f"{STORY}[configs_of_groups-": "new configs of groups",
    f"{STORY}[configs_put-": "new configs of topics",
    f"{STORY}[cordoned_directories-": "lists that name an item twice; before 4.3, all of the config",
    f"{STORY}[loggers-": "unknown operations on loggers",
    f"{STORY}[values_of_groups-": "the text of an interval or time-out out of bounds",
    "test_apis.py::test_both_announce_the_same_versions": "newer versions of requests",
    f"{FIELDS}[ApiVersions": "ApiVersions v5 (KIP-1242)",
    f"{FIELDS}[DeleteGroups": "DeleteGroups v3",
    f"{FIELDS}[StreamsGroupHeartbeat": "StreamsGroupHeartbeat v1",
    f"{FIELDS}[TxnOffsetCommit": "TxnOffsetCommit v6 (KIP-1319)",
    f"{FIELDS}[UnregisterController": "UnregisterController",
}
LATER_THAN: Mapping[str, Mapping[str, str]] = {
    "4.2": {
        **SINCE_4_4,
        f"{STORY}[bad_configs_of_brokers-": "texts, and unknown names",
        f"{STORY}[configs_of_groups_put-": "the synonyms of a group's configs",
    },
    "4.3": SINCE_4_4,
}
"""For each older release, how the ids of tests begin that fail with it, and what a later release changed."""


def needs_newer(test_id: str, release: str) -> str:
    """Return the change in a release later than `release` that a test shows; "" if it passes with `release`.

    test_id: without the folder of these tests.
    """
    changes = LATER_THAN.get(release, {})
    return next((change for beginning, change in changes.items() if test_id.startswith(beginning)), "")
