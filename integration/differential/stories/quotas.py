"""Stories of administrators who set limits for clients. At its end each restores the first state."""

from __future__ import annotations

import math
from collections.abc import Sequence

from integration.differential.stories.admin_talk import Admin, story
from schemas.api_key import ApiKey
from schemas.messages import alter_client_quotas as altering
from schemas.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

PRODUCER, CONSUMER, PERCENTAGE = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATIONS, CONNECTIONS = "controller_mutation_rate", "connection_creation_rate"
EXACT, DEFAULT, SPECIFIED = range(3)

Entity = Sequence[tuple[str, str | None]]
Ops = Sequence[tuple[str, float | None]]


def alter(*entries: tuple[Entity, Ops], validate_only: bool = False) -> altering.AlterClientQuotasRequest:
    return altering.AlterClientQuotasRequest(
        entries=tuple(
            altering.RequestEntryData(
                entity=tuple(
                    altering.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                ),
                ops=tuple(
                    altering.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops
                ),
            )
            for entity, ops in entries
        ),
        validate_only=validate_only,
    )


def find(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ),
        strict=strict,
    )


@story(ApiKey.ALTER_CLIENT_QUOTAS)
def quotas_of_entities(admin: Admin) -> None:
    user, client = admin.topic("ü/*\n"), admin.topic("c" * 300)
    entries: Sequence[tuple[Entity, Ops]] = [
        ([("user", user)], [(PRODUCER, 1024), (CONSUMER, 2048), (PERCENTAGE, 0.5), (MUTATIONS, 1e300)]),
        ([("user", None)], [(PRODUCER, 1.000001)]),
        ([("client-id", client)], [(PRODUCER, 2**63)]),
        ([("client-id", None)], [(CONSUMER, 1e-9)]),
        ([("user", user), ("client-id", client)], [(PRODUCER, 12)]),
        ([("client-id", None), ("user", user)], [(PRODUCER, 13)]),
        ([("client-id", None), ("user", None)], [(PRODUCER, 14), (CONSUMER, 15)]),
        ([("ip", "10.0.0.1")], [(CONNECTIONS, 2**31 - 1)]),
        ([("ip", None)], [(CONNECTIONS, 6)]),
    ]
    filters: Sequence[Sequence[tuple[str, int, str | None]]] = [
        [],
        [("user", EXACT, user)],
        [("user", EXACT, "")],
        [("user", DEFAULT, None)],
        [("user", SPECIFIED, None)],
        [("client-id", SPECIFIED, None)],
        [("client-id", EXACT, client), ("user", EXACT, user)],
        [("user", SPECIFIED, None), ("client-id", DEFAULT, None)],
        [("user", DEFAULT, None), ("client-id", DEFAULT, None)],
        [("ip", SPECIFIED, None)],
        [("ip", DEFAULT, None)],
        [("ip", EXACT, "10.0.0.1")],
    ]
    admin.change(alter(*entries, validate_only=True))
    admin.look(find())
    admin.change(alter(*entries))
    for components in filters:
        for strict in (False, True):
            admin.look(find(*components, strict=strict))
    admin.change(alter(([("user", user)], [(PRODUCER, None), ("no.such", None), (CONSUMER, 4096)])))
    admin.look(find(("user", EXACT, user)))
    for entity, ops in entries:
        admin.change(alter((entity, [(key, None) for key, _ in ops])))
    admin.look(find())


@story(ApiKey.ALTER_CLIENT_QUOTAS)
def bad_quotas(admin: Admin) -> None:
    user, address = [("user", admin.topic("u"))], [("ip", "127.0.0.1")]
    values = [0, -1, -math.inf, math.inf, 0.5, 1.5, 1.0000011, 1023.9999999, 2**31, 1e19, 1e30]
    for entity in (user, address, [("client-id", "c")]):
        for key in (PRODUCER, PERCENTAGE, MUTATIONS, CONNECTIONS, "no.such", ""):
            for value in (*values, math.nan, 7, None):
                admin.change(alter((entity, [(key, value)]), validate_only=True))
    admin.change(alter((user, [])))
    admin.change(alter((user, [(PRODUCER, 1), ("no.such", 2)])))
    admin.change(alter((user, [(PRODUCER, 1), (PRODUCER, 2)])))
    admin.change(alter((user, [(PRODUCER, 1), (PRODUCER, None)]), (user, [(CONSUMER, 1)])))
    admin.change(alter())
    admin.look(find(("user", EXACT, admin.topic("u"))))
    admin.change(alter((user, [(PRODUCER, 1)]), (user, [(CONSUMER, 2)]), ([("user", "")], [(PRODUCER, 1)])))
    admin.look(find(("user", EXACT, admin.topic("u"))))
    admin.change(alter((user, [(PRODUCER, None)])))


@story(ApiKey.ALTER_CLIENT_QUOTAS)
def bad_entities(admin: Admin) -> None:
    entities: Sequence[Entity] = [
        [],
        [("user", "")],
        [("client-id", "")],
        [("ip", "")],
        [("user", "u"), ("user", "u")],
        [("user", "u"), ("user", "v")],
        [("ip", "127.0.0.1"), ("user", "u")],
        [("ip", "127.0.0.1"), ("client-id", None)],
        [("no.such", "x")],
        [("", "x")],
        [("User", "u")],
        [("user", "u"), ("no.such", "x")],
    ]
    addresses = [
        "1.2.3",
        "1",
        "010.1.1.1",
        "::1",
        "[::1]",
        "::ffff:1.2.3.4",
        "::1%1",
        "localhost",
        "LOCALHOST",
    ]
    addresses += ["300.1.1.1", "1.2.3.4.5", "4294967295", "4294967296", "1.2.65536", "0x7f.1", "1..2", ".1"]
    addresses += ["a b", "-x", " 127.0.0.1", "127.0.0.1 ", "127.0.0.1:80", "[127.0.0.1]", "\u0661.1.1.1"]
    addresses += ["::1%", "::1%nope", ":::1", "[::1", "a_b", "x" * 300]
    for entity in (*entities, *([("ip", address)] for address in addresses)):
        for key in (PRODUCER, CONNECTIONS):
            admin.change(alter((entity, [(key, 5)]), validate_only=True))
    twice = [[("user", "u"), ("client-id", None)], [("client-id", None), ("user", "u")]]
    admin.change(alter(*((entity, [(PRODUCER, 5)]) for entity in twice), validate_only=True))
