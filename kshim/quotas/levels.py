"""Finds the quotas that limit a client, among eight levels of entities, and the clients that share each.

For each kind of quota, the most particular level that has one counts. All connections of a client share the
quota; if it was set for a user without a client id, all clients of that user share it. A default quota, for
all users or all client ids, counts for each user or client id separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kshim.cluster.client_quotas import CLIENT_ID, USER, Entity

Who = tuple[str, str]
"""The user and client id of the clients that share a quota. An empty text stands for all."""


class Limit(NamedTuple):
    """A quota, and the clients that share it."""

    who: Who
    per_s: float


def limits_of(quotas: Mapping[Entity, Mapping[str, float]], user: str, client_id: str) -> dict[str, Limit]:
    """The quotas of a client, by name.

    Only the quotas of users limit a client without a client id.
    """
    found: dict[str, Limit] = {}
    for entity, who in _levels(user, client_id):
        if entity in quotas:
            for name, per_s in quotas[entity].items():
                if name not in found:
                    found[name] = Limit(who, per_s)
    return found


def _levels(user: str, client_id: str) -> Iterator[tuple[Entity, Who]]:
    """All entities that a client belongs to, with the clients that share a quota of each. The most particular
    entity comes first; None is the default.
    """
    for of_user in (user, None):
        if client_id:
            yield ((CLIENT_ID, client_id), (USER, of_user)), (user, client_id)
            yield ((CLIENT_ID, None), (USER, of_user)), (user, client_id)
        yield ((USER, of_user),), (user, "")
    if client_id:
        yield ((CLIENT_ID, client_id),), ("", client_id)
        yield ((CLIENT_ID, None),), ("", client_id)
