"""AlterUserScramCredentials (51): set and remove passwords (KIP-554). They apply from the next login on.

As in Kafka, each user is answered once, even if the request names it twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Refusal
from kshim.cluster.scram_users import Deletion, ScramChange, Upsertion, refuse_all
from kshim.storage.interfaces import StorageError
from kshim.turns.slices import in_pieces
from schemas.error_code import ErrorCode
from schemas.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

USERS_AT_ONCE = 200
NOT_STORED = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The credentials could not be stored.")

Outcome = tuple[str, Refusal | None]


async def alter_user_scram_credentials(
    broker: ClusterView, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Change each user's passwords. The changes are durable before the answer."""
    users = broker.cluster.scram_users
    changes: list[ScramChange] = [Deletion(each.name, each.mechanism) for each in request.deletions]
    changes += [
        Upsertion(each.name, each.mechanism, each.iterations, each.salt, each.salted_password)
        for each in request.upsertions
    ]
    refused = {name: why for name, why in refuse_all(changes, users.credentials).items() if why is not None}

    async def alter(some: Sequence[ScramChange]) -> Iterable[Outcome]:
        try:
            return (await users.alter(some)).items()
        except StorageError:
            return [(each.name, NOT_STORED) for each in some]

    wanted = [each for each in changes if each.name not in refused]
    outcomes = await in_pieces(broker.rounds, context.turn, wanted, alter, USERS_AT_ONCE)
    results = {**dict(outcomes), **refused}
    return AlterUserScramCredentialsResponse(results=tuple(_result(*each) for each in results.items()))


def _result(user: str, refusal: Refusal | None) -> AlterUserScramCredentialsResult:
    error_code = refusal.error_code if refusal else ErrorCode.NONE
    error_message = refusal.message if refusal else None
    return AlterUserScramCredentialsResult(user=user, error_code=error_code, error_message=error_message)
