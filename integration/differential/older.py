"""Tests that show what a release of Apache Kafka changed: they fail if an older one is the judge.

docs/kafka-4.4.md describes the changes. Releases are no simple sequence: 4.2.2 has some that 4.3.1 lacks.
"""

from __future__ import annotations

from collections.abc import Mapping

NEW_IN_4_4 = frozenset(
    """
    errors.deadletterqueue.auto.create.topics.enable errors.deadletterqueue.copy.record.enable
    errors.deadletterqueue.group.enable errors.deadletterqueue.topic.name
    errors.deadletterqueue.topic.name.prefix
    group.streams.assignors group.streams.rack.aware.assignment.tags
    group.streams.topology.description.plugin.class
    log.remote.copy.lag.bytes log.remote.copy.lag.ms remote.copy.lag.bytes remote.copy.lag.ms
    sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
    streams.assignor.name streams.rack.aware.assignment.tags
    """.split()
)
NEW_IN_4_3 = frozenset(
    """
    consumer.assignment.interval.ms share.assignment.interval.ms streams.assignment.interval.ms
    controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes cordoned.log.dirs
    follower.fetch.last.tiered.offset.enable
    group.consumer.assignment.interval.ms group.consumer.max.assignment.interval.ms
    group.consumer.min.assignment.interval.ms
    group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes
    group.share.assignment.interval.ms group.share.max.assignment.interval.ms
    group.share.min.assignment.interval.ms
    group.share.max.delivery.count.limit group.share.min.delivery.count.limit
    group.share.max.partition.max.record.locks group.share.min.partition.max.record.locks
    group.streams.assignment.interval.ms group.streams.max.assignment.interval.ms
    group.streams.min.assignment.interval.ms
    share.coordinator.cached.buffer.max.bytes share.delivery.count.limit
    share.partition.max.record.locks share.renew.acknowledge.enable
    """.split()
)
NEWER_CONFIGS: Mapping[str, frozenset[str]] = {
    "4.2": NEW_IN_4_4 | NEW_IN_4_3,
    "4.3": NEW_IN_4_4 | {"max.decompressed.message.bytes"},
}
"""For each older release, the configs that it lacks. Stories do not compare them, so that they still show
what else differs."""

STORY = "stories/test_admin.py::test_both_answer_the_same"
RIGHTS = "acls/test_matrix.py::test_both_answer_the_same"
FIELDS = "test_definitions.py::test_fields_and_versions"
SINCE_4_4 = {
    "acls/test_stories.py::test_both_answer_alike": "ACLs with an empty host",
    f"{STORY}[bad_configs_of_groups-": "new configs of groups",
    f"{STORY}[bad_quotas-": "quotas that are no finite numbers",
    f"{STORY}[configs_of_brokers-": "lists that name an item twice",
    f"{STORY}[configs_of_groups-": "new configs of groups",
    f"{STORY}[controllers_to_forget-": "UnregisterController",
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
RIGHTS_SINCE_4_4 = {
    "create-topics-any-enough": "new configs of topics",
    "create-topics-enough": "new configs of topics",
    "delete-groups-": "DeleteGroups v3",
    "txn-offset-commit-": "TxnOffsetCommit v6 (KIP-1319)",
    "unregister-controller-": "UnregisterController",
    "api-versions-": "ApiVersions v5 (KIP-1242)",
    **{
        f"{request}-{case}": "the error for a broker's configs without the right"
        for request in ("alter-configs", "incremental-alter-configs")
        for case in (
            "nothing",
            "without-alter_configs-cluster",
            "describe_configs-for-alter_configs-cluster",
        )
    },
}
"""Cases of the table of rights that fail with 4.3.1."""
LATER_THAN: Mapping[str, Mapping[str, str]] = {
    "4.2": {
        **SINCE_4_4,
        f"{STORY}[bad_configs_of_brokers-": "texts, and unknown names",
        f"{STORY}[configs_of_groups_put-": "the synonyms of a group's configs",
        f"{STORY}[configs_put-": "the texts that list a broker's fixed configs",
        f"{STORY}[log_dirs-v5": "DescribeLogDirs v5 (KIP-1066)",
        f"{STORY}[topics_created-": "the text of too many replicas",
    },
    "4.3": {
        **SINCE_4_4,
        **{f"{RIGHTS}[{case}": change for case, change in RIGHTS_SINCE_4_4.items()},
    },
}
"""For each older release, how the ids of tests begin that fail with it, and what a later release changed."""


def needs_newer(test_id: str, release: str) -> str:
    """Return the change in a release later than `release` that a test shows; "" if it passes with `release`.

    test_id: without the folder of these tests.
    """
    changes = LATER_THAN.get(release, {})
    return next((change for beginning, change in changes.items() if test_id.startswith(beginning)), "")
