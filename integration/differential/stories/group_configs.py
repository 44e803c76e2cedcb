"""Stories about configs of groups, with good and bad values; each runs at every version of its API."""

from __future__ import annotations

from integration.differential.stories.admin import APPEND, DELETE, GROUP, SET, SUBTRACT, alter, describe, put
from integration.differential.stories.admin_talk import Admin, story
from schemas.api_key import ApiKey
from schemas.messages.list_config_resources import ListConfigResourcesRequest

SESSION, INTERVAL, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)
TAGS, ASSIGNOR, QUEUE, RESET = (
    "streams.rack.aware.assignment.tags",
    "streams.assignor.name",
    "errors.deadletterqueue.topic.name",
    "share.auto.offset.reset",
)
OWN_DEFAULT = (ASSIGNMENT,)
"""kshim has another default: D-assignment-interval."""
NUMBERS = (
    SESSION,
    INTERVAL,
    ASSIGNMENT,
    "share.session.timeout.ms",
    "share.heartbeat.interval.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.session.timeout.ms",
    "streams.heartbeat.interval.ms",
    "streams.num.standby.replicas",
    "streams.initial.rebalance.delay.ms",
    "streams.assignment.interval.ms",
)
SWITCHES = (
    "consumer.assignor.offload.enable",
    "share.assignor.offload.enable",
    "share.renew.acknowledge.enable",
    "streams.assignor.offload.enable",
    "errors.deadletterqueue.copy.record.enable",
)
VALUES = {
    **dict.fromkeys(NUMBERS, ("x", "", "-1", "0", "1", "2", " 5000 ", "45000", "99999999", "2147483648")),
    **dict.fromkeys(SWITCHES, ("true", " FALSE ", "x", "")),
    TAGS: ("", "a", " a , b ", "a,b,a", "a, a", "a,,b", "x" * 300),
    ASSIGNOR: ("", "sticky", " sticky ", "x"),
    QUEUE: ("", "a b", "__consumer_offsets", " __x ", "_x", "x" * 300),
    RESET: (
        "latest",
        " earliest ",
        "LATEST",
        "none",
        "by_duration:",
        "by_duration:PT1H",
        "by_duration:p1dt2h",
        "by_duration:PT1,5S",
        "by_duration:PT.5S",
        "by_duration:-PT-1H",
        "by_duration:-PT1H",
        "by_duration:P1Y",
        "by_duration:P106751991167301D",
    ),
    "share.isolation.level": ("read_committed", " read_uncommitted ", "READ_COMMITTED", ""),
    "no.such": ("1",),
    "": ("1",),
}


@story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def configs_of_groups(admin: Admin) -> None:
    g, other = admin.topic("g"), admin.topic("é \n")
    admin.change(alter((GROUP, g, [(SESSION, SET, " 46000 "), (INTERVAL, SET, "6000")])))
    admin.look(describe((GROUP, g, None)), but_for=OWN_DEFAULT)
    admin.change(alter((GROUP, g, [(ASSIGNMENT, SET, "500")])))
    admin.look(describe((GROUP, g, (ASSIGNMENT,)), synonyms=False))
    admin.change(alter((GROUP, g, [(SESSION, DELETE, None), ("no.such", DELETE, None)])))
    admin.look(describe((GROUP, g, (SESSION, INTERVAL))))
    for switch in SWITCHES:
        admin.change(alter((GROUP, other, [(switch, SET, " FALSE ")])))
    admin.change(alter((GROUP, other, [(TAGS, SET, " a , b "), (RESET, SET, " earliest ")])))
    admin.look(describe((GROUP, other, None)), but_for=OWN_DEFAULT)
    admin.look(describe((GROUP, other, (TAGS, "no.such", TAGS)), (GROUP, g, ())), but_for=OWN_DEFAULT)
    admin.change(alter((GROUP, g, [(SESSION, SET, "47000")]), validate_only=True))
    admin.look(describe((GROUP, g, (SESSION,))))
    admin.look(ListConfigResourcesRequest(resource_types=(GROUP,)), version=1)


@story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def values_of_groups(admin: Admin) -> None:
    g = admin.topic("g")
    for name, values in VALUES.items():
        for value in values:
            admin.change(alter((GROUP, g, [(name, SET, value)]), validate_only=True))


@story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def bad_configs_of_groups(admin: Admin) -> None:
    g = admin.topic("g")
    one = (SESSION, SET, "46000")
    for operations in (
        [],
        [(SESSION, SET, None)],
        [(SESSION, APPEND, "1")],
        [(TAGS, APPEND, "a")],
        [(TAGS, SUBTRACT, "a")],
        [("no.such", APPEND, "a")],
        [one, one],
        [("zz", SET, "1"), ("aa", SET, "1"), one],
        [(name, SET, "x") for name in (ASSIGNOR, RESET, *reversed(NUMBERS), *SWITCHES)],
        [(name, SET, "99999999") for name in reversed(NUMBERS)],
        [(QUEUE, SET, "__x"), (ASSIGNOR, SET, "x"), (TAGS, SET, "a,a"), (SESSION, SET, "x")],
        [(QUEUE, SET, "__x"), (ASSIGNOR, SET, "x"), (SESSION, SET, "1")],
        [(QUEUE, SET, "__x"), (ASSIGNOR, SET, "x")],
    ):
        admin.change(alter((GROUP, g, operations)))
    for operations in ([], [one], [("no.such", SET, "1")], [(TAGS, APPEND, "a")], [(SESSION, SET, None)]):
        admin.change(alter((GROUP, "", operations)))
    admin.change(alter((GROUP, g, [one]), (GROUP, admin.topic("h"), [one]), (GROUP, g, [one])))
    admin.look(describe((GROUP, "", None), (GROUP, g, (SESSION,)), (GROUP, admin.topic("h"), (SESSION,))))


@story(ApiKey.ALTER_CONFIGS)
def configs_of_groups_put(admin: Admin) -> None:
    g = admin.topic("g")
    for configs in (
        [(SESSION, "46000"), (INTERVAL, "6000")],
        [(INTERVAL, "7000")],
        [("no.such", "1")],
        [(SESSION, None)],
        [(SESSION, "x")],
        [(SESSION, "46000"), (SESSION, "46000")],
    ):
        admin.change(put((GROUP, g, configs)))
        admin.look(describe((GROUP, g, (SESSION, INTERVAL))))
    admin.change(put((GROUP, g, [(SESSION, "48000")]), validate_only=True))
    admin.change(put((GROUP, "", [(SESSION, "46000")])))
    admin.look(describe((GROUP, g, (SESSION, INTERVAL))))
    admin.change(put((GROUP, g, [])))
    admin.look(describe((GROUP, g, (SESSION, INTERVAL))))
