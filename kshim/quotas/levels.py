"""Which quotas limit a client, of the eight levels on which they can be set; who shares each of them.

A client is limited on the first level, from the most to the least particular, that has a quota of the kind.
All its connections share that quota, with all clients of its user if it was set for a user alone; a quota
that was set for all users, or for all client ids, is each one's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kshim.cluster.client_quotas import CLIENT_ID, USER, Entity

Who = tuple[str, str]
"""User and client id of those who share a quota; an empty one stands for all."""


class Limit(NamedTuple):
    """A quota, and who shares it."""

    who: Who
    per_s: float


def limits_of(quotas: Mapping[Entity, Mapping[str, float]], user: str, client_id: str) -> dict[str, Limit]:
    """The quotas of a client, by their names.

    A client without a client id is limited by the quotas of users alone.
    """
    found: dict[str, Limit] = {}
    for entity, who in _levels(user, client_id):
        if entity in quotas:
            for name, per_s in quotas[entity].items():
                if name not in found:
                    found[name] = Limit(who, per_s)
    return found


def _levels(user: str, client_id: str) -> Iterator[tuple[Entity, Who]]:
    """All entities that stand for a client, the most particular first; None is the default."""
    for of_user in (user, None):
        if client_id:
            yield ((CLIENT_ID, client_id), (USER, of_user)), (user, client_id)
            yield ((CLIENT_ID, None), (USER, of_user)), (user, client_id)
        yield ((USER, of_user),), (user, "")
    if client_id:
        yield ((CLIENT_ID, client_id),), ("", client_id)
        yield ((CLIENT_ID, None),), ("", client_id)
