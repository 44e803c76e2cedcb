"""Kafka's eight levels of quotas."""

from __future__ import annotations

import itertools

from kshim.cluster.client_quotas import Entity, new_entity
from kshim.quotas.levels import Limit, limits_of

LEVELS: list[tuple[Entity, tuple[str, str]]] = [
    (new_entity([("user", "u"), ("client-id", "c")]), ("u", "c")),
    (new_entity([("user", "u"), ("client-id", None)]), ("u", "c")),
    (new_entity([("user", "u")]), ("u", "")),
    (new_entity([("user", None), ("client-id", "c")]), ("u", "c")),
    (new_entity([("user", None), ("client-id", None)]), ("u", "c")),
    (new_entity([("user", None)]), ("u", "")),
    (new_entity([("client-id", "c")]), ("", "c")),
    (new_entity([("client-id", None)]), ("", "c")),
]
"""From the most particular, and who shares a quota there."""
OF_OTHERS: list[Entity] = [
    new_entity([("user", "u"), ("client-id", "d")]),
    new_entity([("user", "v"), ("client-id", "c")]),
    new_entity([("user", "v"), ("client-id", None)]),
    new_entity([("user", "v")]),
    new_entity([("client-id", "d")]),
    new_entity([("ip", "127.0.0.1")]),
    new_entity([("ip", None)]),
]


def test_the_most_particular_of_any_levels_counts() -> None:
    for some in itertools.product((False, True), repeat=len(LEVELS)):
        chosen = [(place, level) for place, level in enumerate(LEVELS) if some[place]]
        quotas = {entity: {"q": float(place)} for place, (entity, _) in chosen}
        quotas |= {entity: {"q": 99.0} for entity in OF_OTHERS}
        expected = {"q": Limit(chosen[0][1][1], float(chosen[0][0]))} if chosen else {}
        assert limits_of(quotas, "u", "c") == expected


def test_each_quota_is_looked_for_by_itself() -> None:
    quotas = {LEVELS[1][0]: {"p": 1.0}, LEVELS[5][0]: {"p": 2.0, "q": 3.0}, LEVELS[7][0]: {"r": 4.0}}
    assert limits_of(quotas, "u", "c") == {
        "p": Limit(("u", "c"), 1.0),
        "q": Limit(("u", ""), 3.0),
        "r": Limit(("", "c"), 4.0),
    }


def test_who_has_no_client_id_has_the_quotas_of_users_alone() -> None:
    quotas = {entity: {"q": float(place)} for place, (entity, _) in enumerate(LEVELS)}
    assert limits_of(quotas, "u", "") == {"q": Limit(("u", ""), 2.0)}
    assert limits_of({LEVELS[4][0]: {"q": 1.0}, LEVELS[7][0]: {"q": 1.0}}, "u", "") == {}
