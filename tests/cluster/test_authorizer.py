"""The authorizer decides as Kafka's StandardAuthorizer: compared with ACLs that are looked at one by one."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.cluster.acl import Acl, AclOperation, AclResource, Pattern, PatternType, Permission
from kshim.cluster.authorizer import EVERYTHING, MOST_KNOWN, Authorizer

ALICE, HOST = "User:alice", "10.0.0.1"
TOPIC = AclResource.TOPIC
READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY


def acl(
    name: str,
    operation: int = READ,
    permission: int = ALLOW,
    *,
    pattern: int = LITERAL,
    principal: str = ALICE,
    host: str = "*",
    resource: int = TOPIC,
) -> Acl:
    return Acl(Pattern(resource, name, pattern), principal, host, operation, permission)


def authorizer(*acls: Acl, allow_everyone: bool = False) -> Authorizer:
    made = Authorizer({"User:root"}, allow_everyone=allow_everyone)
    for each in acls:
        made.add(each)
    return made


@pytest.mark.parametrize(
    ("acls", "operation", "name", "allowed"),
    [
        ([], READ, "t", False),
        ([acl("t")], READ, "t", True),
        ([acl("t")], WRITE, "t", False),
        ([acl("t")], READ, "tt", False),
        ([acl("t")], DESCRIBE, "t", True),
        ([acl("t", WRITE)], DESCRIBE, "t", True),
        ([acl("t", AclOperation.CREATE)], DESCRIBE, "t", False),
        ([acl("t", AclOperation.ALTER_CONFIGS)], AclOperation.DESCRIBE_CONFIGS, "t", True),
        ([acl("t", AclOperation.ALTER_CONFIGS)], DESCRIBE, "t", False),
        ([acl("t", AclOperation.ALTER)], AclOperation.DESCRIBE_CONFIGS, "t", False),
        ([acl("t", ALL)], AclOperation.ALTER, "t", True),
        ([acl("*")], READ, "any", True),
        ([acl("*", pattern=PREFIXED)], READ, "any", False),
        ([acl("or", pattern=PREFIXED)], READ, "orders", True),
        ([acl("or", pattern=PREFIXED)], READ, "or", True),
        ([acl("or", pattern=PREFIXED)], READ, "o", False),
        ([acl("t", principal="User:*")], READ, "t", True),
        ([acl("t", principal="User:bob")], READ, "t", False),
        ([acl("t", principal="Group:alice")], READ, "t", False),
        ([acl("t", host=HOST)], READ, "t", True),
        ([acl("t", host="10.0.0.2")], READ, "t", False),
        ([acl("t", resource=AclResource.GROUP)], READ, "t", False),
        # one that denies wins, wherever it is
        ([acl("t"), acl("t", READ, DENY)], READ, "t", False),
        ([acl("t"), acl("*", READ, DENY, principal="User:*")], READ, "t", False),
        ([acl("*", ALL), acl("t", READ, DENY, pattern=PREFIXED)], READ, "tt", False),
        ([acl("t", ALL), acl("t", ALL, DENY, host=HOST)], WRITE, "t", False),
        # who is denied to read may still describe, if anything allows it
        ([acl("t", READ, DENY)], DESCRIBE, "t", False),
        ([acl("t", WRITE), acl("t", READ, DENY)], DESCRIBE, "t", True),
        ([acl("t", WRITE), acl("t", DESCRIBE, DENY)], DESCRIBE, "t", False),
        ([acl("t", WRITE), acl("t", DESCRIBE, DENY)], WRITE, "t", True),
    ],
)
def test_what_acls_say(acls: Sequence[Acl], operation: int, name: str, allowed: bool) -> None:
    assert authorizer(*acls).allows(ALICE, HOST, operation, TOPIC, name) is allowed
    assert authorizer(*reversed(acls)).allows(ALICE, HOST, operation, TOPIC, name) is allowed


def test_super_users_may_do_everything() -> None:
    denied = authorizer(acl("*", ALL, DENY, principal="User:*"))
    assert denied.operations("User:root", HOST, TOPIC, "t") == EVERYTHING
    assert denied.operations(ALICE, HOST, TOPIC, "t") == 0


def test_everybody_may_use_what_no_acl_is_about() -> None:
    open_ = authorizer(acl("secret", principal="User:bob"), acl("p", pattern=PREFIXED), allow_everyone=True)
    assert open_.operations(ALICE, HOST, TOPIC, "free") == EVERYTHING
    assert open_.operations(ALICE, HOST, TOPIC, "secret") == 0
    assert open_.allows(ALICE, HOST, READ, TOPIC, "p1")
    assert not open_.allows(ALICE, HOST, WRITE, TOPIC, "p1")
    assert open_.operations(ALICE, HOST, AclResource.GROUP, "secret") == EVERYTHING


def test_a_change_counts_at_once() -> None:
    changing = authorizer()
    allowing = acl("or", pattern=PREFIXED)
    for _ in range(2):
        assert not changing.allows(ALICE, HOST, READ, TOPIC, "orders")
        changing.add(allowing)
        assert changing.allows(ALICE, HOST, READ, TOPIC, "orders")
        denying = acl("orders", READ, DENY)
        changing.add(denying)
        assert not changing.allows(ALICE, HOST, READ, TOPIC, "orders")
        changing.remove(denying)
        assert changing.allows(ALICE, HOST, READ, TOPIC, "orders")
        changing.remove(allowing)


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([acl("t", WRITE)], True),
        ([acl("t", ALL)], True),
        ([acl("t", READ)], False),
        ([acl("t", WRITE, host="10.0.0.2")], False),
        ([acl("t", WRITE, resource=AclResource.GROUP)], False),
        ([acl("t", WRITE), acl("t", WRITE, DENY)], False),
        ([acl("t", WRITE), acl("u", WRITE, DENY)], True),
        ([acl("t", WRITE), acl("*", WRITE, DENY)], False),
        ([acl("*", WRITE), acl("t", WRITE, DENY)], True),
        ([acl("tt", WRITE), acl("t", WRITE, DENY, pattern=PREFIXED)], False),
        ([acl("tt", WRITE, pattern=PREFIXED), acl("t", WRITE, DENY, pattern=PREFIXED)], False),
        ([acl("t", WRITE, pattern=PREFIXED), acl("tt", WRITE, DENY, pattern=PREFIXED)], True),
        ([acl("t", WRITE, pattern=PREFIXED), acl("t", WRITE, DENY)], True),
    ],
)
def test_whether_any_topic_may_be_written(acls: Sequence[Acl], allowed: bool) -> None:
    assert authorizer(*acls).allows_any(ALICE, HOST, WRITE, TOPIC) is allowed
    assert authorizer(*acls).allows_any("User:root", HOST, WRITE, TOPIC)


NAMES = st.text("ab", min_size=1, max_size=4)
ACLS = st.builds(
    acl,
    NAMES | st.just("*"),
    st.sampled_from([each for each in AclOperation if each > AclOperation.ANY]),
    st.sampled_from([ALLOW, ALLOW, DENY]),
    pattern=st.sampled_from([LITERAL, PREFIXED]),
    principal=st.sampled_from([ALICE, "User:bob", "User:*"]),
    host=st.sampled_from(["*", HOST, "10.0.0.2"]),
    resource=st.sampled_from([TOPIC, AclResource.GROUP]),
)
IMPLIED = {
    DESCRIBE: {READ, WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}


def by_reading_all(acls: Sequence[Acl], operation: int, name: str, allow_everyone: bool) -> bool:
    """The decision by the rules in Kafka's documentation."""
    about = [
        each
        for each in acls
        if each.pattern.resource_type == TOPIC
        and (
            each.pattern.name in (name, "*")
            if each.pattern.pattern_type == LITERAL
            else name.startswith(each.pattern.name)
        )
    ]
    ours = [each for each in about if each.principal in (ALICE, "User:*") and each.host in ("*", HOST)]
    if any(each.permission == DENY and each.operation in (ALL, operation) for each in ours):
        return False
    enough = {ALL, operation, *IMPLIED.get(AclOperation(operation), ())}
    if any(each.permission == ALLOW and each.operation in enough for each in ours):
        return True
    return allow_everyone and not about


@given(st.lists(ACLS, max_size=8, unique=True), st.integers(0, 8), NAMES, st.booleans())
def test_it_decides_as_by_reading_all(acls: list[Acl], removed: int, name: str, allow_everyone: bool) -> None:
    made = authorizer(*acls, allow_everyone=allow_everyone)
    for each in acls[:removed]:
        made.remove(each)
    for operation in AclOperation:
        if operation > ALL:
            allowed = by_reading_all(acls[removed:], operation, name, allow_everyone)
            assert made.allows(ALICE, HOST, operation, TOPIC, name) is allowed, AclOperation(operation).name


def test_what_is_known_is_bounded() -> None:
    made = authorizer(acl("*"))
    for number in range(2 * MOST_KNOWN + 10):
        assert made.allows(ALICE, HOST, READ, TOPIC, f"topic-{number}")
    made.operations(ALICE, HOST, TOPIC, "x" * 30_000)
    assert len(made._known) <= MOST_KNOWN
    assert max(len(name) for _, _, _, name in made._known) < 1_000


def test_ten_thousand_acls_cost_no_more_than_ten() -> None:
    few = authorizer(*(acl(f"topic-{number}", pattern=PREFIXED) for number in range(10)))
    many = authorizer(
        *(acl(f"topic-{number}", pattern=PREFIXED) for number in range(5_000)),
        *(acl("*", principal=f"User:{number}") for number in range(5_000)),
    )

    def seconds(made: Authorizer) -> float:
        names = [f"another-{number}" for number in range(2_000)]
        began = time.process_time()
        for name in names:
            made._decide(ALICE, HOST, TOPIC, name)
        return time.process_time() - began

    assert min(seconds(many) for _ in range(3)) < 5 * min(seconds(few) for _ in range(3))


def test_a_decision_costs_more_with_prefixes_of_many_lengths() -> None:
    """Only those count that a name may have; each length counts once."""
    made = authorizer(acl("t"))
    least_us = made.cost_us(TOPIC, "x" * 249)
    for length in range(1, 241):
        made.add(acl("x" * length, pattern=PREFIXED))
        made.add(acl("y" * length, pattern=PREFIXED))
    assert made.cost_us(TOPIC, "x" * 249) > 10 * least_us
    assert made.cost_us(TOPIC, "x") == least_us
    assert made.cost_us(AclResource.GROUP, "x" * 249) == least_us
    for length in range(1, 241):
        made.remove(acl("x" * length, pattern=PREFIXED))
        made.remove(acl("y" * length, pattern=PREFIXED))
    assert made.cost_us(TOPIC, "x" * 249) == least_us
