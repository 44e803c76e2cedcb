"""AlterClientQuotas and DescribeClientQuotas: what is set is listed, and durable, as in Kafka 4.2."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from kshim.answering import Broker
from kshim.api.alter_client_quotas import ENTITIES_AT_ONCE, alter_client_quotas
from kshim.api.describe_client_quotas import describe_client_quotas
from kshim.storage.memory import MemoryStore
from schemas.error_code import ErrorCode
from schemas.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from schemas.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.api.harness import PENDING, HeldStore, advance, ask, collect, context, later, new_broker, result

PRODUCER, CONSUMER, PERCENTAGE = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATIONS, CONNECTIONS = "controller_mutation_rate", "connection_creation_rate"
EXACT, DEFAULT, SPECIFIED = range(3)

Entity = Sequence[tuple[str, str | None]]
Ops = Sequence[tuple[str, float | None]]
Listed = dict[tuple[tuple[str, str | None], ...], dict[str, float]]

U: Entity = [("user", "u")]
V: Entity = [("user", "v")]
EVERY_USER: Entity = [("user", None)]
C: Entity = [("client-id", "c")]
U_C: Entity = [("user", "u"), ("client-id", "c")]
ADDRESS: Entity = [("ip", "10.0.0.1")]


def altering(*entries: tuple[Entity, Ops], validate_only: bool = False) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        entries=tuple(
            RequestEntryData(
                entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
                ops=tuple(OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops),
            )
            for entity, ops in entries
        ),
        validate_only=validate_only,
    )


def alter(broker: Broker, *entries: tuple[Entity, Ops], validate_only: bool = False) -> list[str | None]:
    """The message of each answer, None for success."""
    response = ask(alter_client_quotas, broker, altering(*entries, validate_only=validate_only), 1)
    return messages(response)


def messages(response: AlterClientQuotasResponse) -> list[str | None]:
    codes = {None: {ErrorCode.NONE}}
    assert all(
        it.error_code in codes.get(it.error_message, {ErrorCode.INVALID_REQUEST}) for it in response.entries
    )
    return [each.error_message for each in response.entries]


def listed(broker: Broker, *components: tuple[str, int, str | None], strict: bool = False) -> Listed:
    request = DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ),
        strict=strict,
    )
    response = ask(describe_client_quotas, broker, request, 1)
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in response.entries
    }


def test_quotas_are_listed_and_durable_until_they_are_removed() -> None:
    store = MemoryStore()
    broker = new_broker(store)
    long = "ü\x00/" * 9000
    assert alter(broker, (U, [(PRODUCER, 1024), (PERCENTAGE, 0.5)]), ([("user", long)], [(CONSUMER, 5)])) == [
        None,
        None,
    ]
    expected = {(("user", "u"),): {PRODUCER: 1024.0, PERCENTAGE: 0.5}, (("user", long),): {CONSUMER: 5.0}}
    assert listed(broker) == listed(new_broker(store)) == expected
    assert alter(broker, (U, [(PRODUCER, None), ("no.such", None), (PERCENTAGE, 7)])) == [None]
    expected[("user", "u"),] = {PERCENTAGE: 7.0}
    assert listed(broker) == listed(new_broker(store)) == expected
    assert alter(broker, (U, [(PERCENTAGE, None)]), ([("user", long)], [(CONSUMER, None)])) == [None, None]
    assert listed(broker) == listed(new_broker(store)) == {}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("key", [PRODUCER, MUTATIONS])
def test_what_is_no_number_is_refused(key: str, value: float) -> None:
    """As in Kafka 4.4; 4.2 kept some."""
    assert alter(new_broker(), (U, [(key, value)])) == [f"Quota {key} must be a finite number"]


def test_a_dry_run_changes_nothing() -> None:
    broker = new_broker()
    assert alter(broker, (U, [(PRODUCER, 1)]), (V, [(PRODUCER, -1)]), validate_only=True) == [
        None,
        f"Quota {PRODUCER} must be greater than 0",
    ]
    assert listed(broker) == {}


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, [U, EVERY_USER, C, U_C, ADDRESS]),
        ([], True, []),
        ([("user", EXACT, "u")], False, [U, U_C]),
        ([("user", EXACT, "u")], True, [U]),
        ([("user", DEFAULT, None)], False, [EVERY_USER]),
        ([("user", SPECIFIED, None)], True, [U, EVERY_USER]),
        ([("client-id", SPECIFIED, None)], False, [C, U_C]),
        ([("client-id", EXACT, "c"), ("user", EXACT, "u")], True, [U_C]),
        ([("client-id", EXACT, "c"), ("user", DEFAULT, None)], False, []),
        ([("ip", EXACT, "10.0.0.1")], False, [ADDRESS]),
        ([("ip", DEFAULT, None)], False, []),
    ],
)
def test_filters(
    components: Sequence[tuple[str, int, str | None]], strict: bool, found: list[Entity]
) -> None:
    broker = new_broker()
    alter(
        broker, *((each, [(PRODUCER, 1)]) for each in (U, EVERY_USER, C, U_C)), (ADDRESS, [(CONNECTIONS, 1)])
    )
    assert set(map(frozenset, listed(broker, *components, strict=strict))) == set(map(frozenset, found))


@pytest.mark.parametrize("key", [PRODUCER, CONSUMER])
@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1.000001, None),
        (1e-9, None),
        (2.0**63, None),
        (1.0000011, "{} cannot be a fractional value."),
        (1023.9999999, "{} cannot be a fractional value."),
        (1e19, "Proposed value for {} is too large for a LONG."),
        (0, "Quota {} must be greater than 0"),
        (-math.inf, "Quota {} must be a finite number"),
    ],
)
def test_rates_in_bytes(key: str, value: float, told: str | None) -> None:
    assert alter(new_broker(), (U, [(key, value)])) == [told and told.format(key)]


@pytest.mark.parametrize(
    ("entity", "key", "value", "told"),
    [
        (U, PERCENTAGE, 1e300, None),
        (U_C, MUTATIONS, 0.001, None),
        (U, PERCENTAGE, 0, f"Quota {PERCENTAGE} must be greater than 0"),
        (U, CONNECTIONS, 1, f"Invalid configuration key {CONNECTIONS}"),
        (C, "no.such", 0, "Invalid configuration key no.such"),
        (ADDRESS, PRODUCER, 1, f"Invalid configuration key {PRODUCER}"),
        (ADDRESS, CONNECTIONS, 2**31 - 1, None),
        (ADDRESS, CONNECTIONS, 2**31, f"Proposed value for {CONNECTIONS} is too large for an INT."),
        (ADDRESS, CONNECTIONS, 1.5, f"{CONNECTIONS} cannot be a fractional value."),
    ],
)
def test_other_rates(entity: Entity, key: str, value: float, told: str | None) -> None:
    assert alter(new_broker(), (entity, [(key, value)])) == [told]


@pytest.mark.parametrize(
    ("entity", "told"),
    [
        ([], "Invalid empty client quota entity"),
        ([("user", "")], "Empty user not supported"),
        ([("User", "u")], "Unhandled client quota entity type: User"),
        ([("user", "u"), ("x", "y")], "Unhandled client quota entity type: x"),
        (
            [("ip", "10.0.0.1"), ("user", "u")],
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ([("ip", "300.1.1.1")], "300.1.1.1 is not a valid IP or resolvable host."),
    ],
)
def test_entities_without_quotas(entity: Entity, told: str) -> None:
    broker = new_broker()
    assert alter(broker, (entity, [(PRODUCER, None)])) == [told]
    assert listed(broker) == {}


@pytest.mark.parametrize(
    ("address", "is_valid"),
    [
        ("1", True),
        ("1.2.3", True),
        ("1.2.65535", True),
        ("1.2.65536", False),
        ("4294967296", False),
        ("::1", True),
        ("[::1]", True),
        ("::1%1", True),
        ("::1%", False),
        ("[127.0.0.1]", False),
        ("host.example", True),
        ("1..2", False),
        ("0x7f.1", False),
        ("a b", False),
        ("-x", False),
        ("x" * 64, False),
        (".".join(["x" * 63] * 4), False),
        ("1" * 30_000, False),
        ("a." * 15_000 + "1", False),
    ],
)
def test_addresses(address: str, is_valid: bool) -> None:
    told = None if is_valid else f"{address} is not a valid IP or resolvable host."
    assert alter(new_broker(), ([("ip", address)], [(CONNECTIONS, 1)])) == [told]


def test_an_entity_is_changed_whole_or_not_at_all() -> None:
    broker = new_broker()
    assert alter(broker, (U, [(PRODUCER, 1), ("x", 1)]), (V, [(PRODUCER, 1)])) == [
        "Invalid configuration key x",
        None,
    ]
    assert listed(broker) == {(("user", "v"),): {PRODUCER: 1.0}}


def test_an_entity_that_is_named_again_is_refused_but_its_first_change_is_made() -> None:
    broker = new_broker()
    twice = ["Ignoring duplicate entity ClientQuotaEntity(entries={client-id=null, user=u})"]
    one: Entity = [("user", "u"), ("client-id", None)]
    other: Entity = [("client-id", None), ("user", "x"), ("user", "u")]
    assert alter(broker, (one, [(PRODUCER, 1)]), (other, [(PRODUCER, 2)])) == twice
    assert listed(broker) == {(("client-id", None), ("user", "u")): {PRODUCER: 1.0}}


def test_a_key_that_is_named_twice() -> None:
    broker = new_broker()
    twice = ["Ignoring duplicate entity ClientQuotaEntity(entries={user=u})"]
    assert alter(broker, (U, [(PRODUCER, 1), (PRODUCER, 2)]), (U, [(PRODUCER, 3)])) == twice
    assert listed(broker) == {}


def test_many_entities_are_changed_in_pieces() -> None:
    broker = new_broker()
    count = ENTITIES_AT_ONCE + 1
    entries: list[tuple[Entity, Ops]] = [
        ([("user", str(number))], [(PRODUCER, 1)]) for number in range(count)
    ]
    seen = collect(alter_client_quotas(broker, context(1), altering(*entries)))
    while not seen:
        advance(broker)
    assert messages(seen[0]) == [None] * count
    assert len(broker.cluster.client_quotas.by_entity) == count


def test_an_answer_waits_until_the_change_is_durable() -> None:
    store = HeldStore()
    broker = new_broker(store)
    answer = alter_client_quotas(broker, context(1), altering((U, [(PRODUCER, 1)])))
    assert (result(answer), listed(broker)) == (PENDING, {})
    store.release_all()
    assert listed(broker) == {(("user", "u"),): {PRODUCER: 1.0}}


def test_a_change_that_cannot_be_stored() -> None:
    store = HeldStore()
    broker = new_broker(store)
    answer = later(alter_client_quotas(broker, context(1), altering((U, [(PRODUCER, 1)]))))
    store.fail()
    (entry,) = result(answer).entries
    assert (entry.error_code, listed(broker)) == (ErrorCode.KAFKA_STORAGE_ERROR, {})
