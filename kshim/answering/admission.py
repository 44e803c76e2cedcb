"""Decides if a client may make or delete partitions now (controller_mutation_rate, KIP-599)."""

from __future__ import annotations

from kshim.callers import RequestContext
from kshim.cluster.checks import Refusal
from kshim.cluster.cluster import Admit, admit_all

__all__ = ["Admit", "admission"]


def admission(context: RequestContext, first_strict_version: int = 0, *, waits: bool = True) -> Admit:
    """Counts partitions, and refuses them while the client is beyond its quota.

    Clients of older versions do not know the refusal: they get what they want. waits: whether the client has
    to wait then.
    """
    account = context.account
    if account is None:
        return admit_all
    strict = context.api_version >= first_strict_version

    def admit(partitions: int) -> Refusal | None:
        return account.mutated(partitions, strict=strict, waits=waits)

    return admit
