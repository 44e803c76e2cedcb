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
TOOLS = "tools/test_admin_tools.py::test_tools_print_the_same"
HISTORIES = "histories/test_histories.py::test_both_answer_the_same"
INVENTED = "invented/test_invented.py::test_both_answer_invented_histories_the_same"
MEMBERS = "members/test_members.py"
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
    "looseness/test_loose.py::test_both_": "newer versions of requests",
    "looseness/test_loose.py::test_neither_reads_it[null where it is not allowed]": "newer requests",
    "quotas/test_quotas.py::test_any_request_counts_by_its_time": "ApiVersions v5 (KIP-1242)",
    "test_apis.py::test_both_announce_the_same_versions": "newer versions of requests",
    f"{FIELDS}[ApiVersions": "ApiVersions v5 (KIP-1242)",
    f"{FIELDS}[DeleteGroups": "DeleteGroups v3",
    f"{FIELDS}[StreamsGroupHeartbeat": "StreamsGroupHeartbeat v1",
    f"{FIELDS}[TxnOffsetCommit": "TxnOffsetCommit v6 (KIP-1319)",
    f"{FIELDS}[UnregisterController": "UnregisterController",
}
TOOLS_SINCE_4_4 = {
    **{
        f"{TOOLS}[{command}": f"new configs of {entity}"
        for command, entity in (
            ("21-ConfigCommand --entity-type topics --entity-name toolbox --describe --all", "topics"),
            ("33-ConfigCommand --entity-type brokers --entity-name 1 --describe --all", "brokers"),
            ("38-ConfigCommand --entity-type topics --entity-name toolbox --describe --all", "topics"),
            ("49-ConfigCommand --entity-type groups --entity-name toolbox --describe --all", "groups"),
            ("52-ConfigCommand --entity-type groups --entity-name toolbox --describe --all", "groups"),
        )
    },
    f"{TOOLS}[56-ConfigCommand --entity-type groups": "the text of a time-out out of bounds",
}
RIGHTS_SINCE_4_4 = {
    "create-topics-any-enough": "new configs of topics",
    "create-topics-enough": "new configs of topics",
    "delete-groups-": "DeleteGroups v3",
    "txn-offset-commit-": "TxnOffsetCommit v6 (KIP-1319)",
    "unregister-controller-": "UnregisterController",
    "api-versions-": "ApiVersions v5 (KIP-1242)",
}
"""Cases of the table of rights."""
ALTERING = ("alter-configs", "incremental-alter-configs")
NOT_IN_4_3 = {
    f"{request}-{case}": "the error for a broker's configs without the right"
    for request in ALTERING
    for case in ("nothing", "without-alter_configs-cluster", "describe_configs-for-alter_configs-cluster")
}
NOT_IN_4_2 = {
    **{
        f"{request}-{case}": "a config of groups that is new in 4.3"
        for request in ALTERING
        for case in (
            *("describe_configs-for-alter_configs-cluster", "describe_configs-for-alter_configs-topic"),
            *("enough", "without-alter_configs-cluster", "without-alter_configs-topic"),
        )
    },
    "describe-log-dirs-": "DescribeLogDirs v5 (KIP-1066)",
}
LATER_THAN: Mapping[str, Mapping[str, str]] = {
    "4.2": {
        **SINCE_4_4,
        **TOOLS_SINCE_4_4,
        **{f"{RIGHTS}[{case}": change for case, change in (RIGHTS_SINCE_4_4 | NOT_IN_4_2).items()},
        "differences/test_differences.py::test_both_answer_as_the_page_says[D-assignment-interval-": (
            "the interval between assignments"
        ),
        "stories/test_fetch.py::test_both_answer_a_story_alike[topics_without_ids]": "topics without ids",
        f"{INVENTED}[admin]": "the text of too many replicas, and others",
        f"{TOOLS}[8-TopicCommand --create": "the text of too many replicas",
        f"{TOOLS}[39-ConfigCommand --entity-type brokers": "the text that lists a broker's fixed configs",
        **{
            f"{TOOLS}[{command} ": "the synonyms of a group's configs"
            for command in ("51-ConfigCommand", "53-ConfigCommand", "54-ConfigCommand", "62-ConfigCommand")
        },
        f"{STORY}[bad_configs_of_brokers-": "texts, and unknown names",
        f"{STORY}[configs_of_groups_put-": "the synonyms of a group's configs",
        f"{STORY}[configs_put-": "the texts that list a broker's fixed configs",
        f"{STORY}[log_dirs-v5": "DescribeLogDirs v5 (KIP-1066)",
        f"{STORY}[topics_created-": "the text of too many replicas",
    },
    "4.3": {
        **SINCE_4_4,
        **TOOLS_SINCE_4_4,
        **{f"{RIGHTS}[{case}": change for case, change in (RIGHTS_SINCE_4_4 | NOT_IN_4_3).items()},
        **{
            f"{MEMBERS}::test_both_answer_alike[{seed}]": "the epoch of a member without topics"
            for seed in (22, 30, 71)
        },
        f"{INVENTED}[admin]": "the config max.decompressed.message.bytes",
        f"{INVENTED}[records]": "the config max.decompressed.message.bytes",
        **{
            f"{HISTORIES}[114-the-metadata-of-a-consumer-is-{what}-": "a subscription that cannot be read"
            for what in ("cut", "text")
        },
    },
}
"""For each older release, how the ids of tests begin that fail with it, and what a later release changed."""

UNCOMPARED: Mapping[str, Mapping[str, str]] = {
    "4.2": {MEMBERS: "the first epoch of a group: after it, all epochs are others"},
}
"""For each older release, how the ids of tests begin that show nothing with it, and which change is in their
way."""


def needs_newer(test_id: str, release: str) -> str:
    """Return the change in a release later than `release` that a test shows; "" if it passes with `release`.

    test_id: without the folder of these tests.
    """
    return _change(LATER_THAN.get(release, {}), test_id)


def shows_nothing(test_id: str, release: str) -> str:
    """Return the change that is in the way of a test whose judge is `release`; "" if none is."""
    return _change(UNCOMPARED.get(release, {}), test_id)


def _change(changes: Mapping[str, str], test_id: str) -> str:
    return next((change for beginning, change in changes.items() if test_id.startswith(beginning)), "")
