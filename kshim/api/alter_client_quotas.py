"""AlterClientQuotas (49): set and remove quotas (KIP-546). They apply from the next request on.

As in Kafka, each entity is changed as a whole or refused, and answered once. If two entries name the same
entity, the first one takes effect, but the answer refuses the entity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Refusal
from kshim.cluster.client_quotas import Entity, QuotaChange, entity_text, new_entity
from kshim.storage.interfaces import StorageError
from kshim.turns.slices import in_pieces
from schemas.error_code import ErrorCode
from schemas.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    RequestEntryData,
)

ENTITIES_AT_ONCE = 200
NOT_STORED = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The quotas could not be stored.")

Outcome = tuple[Entity, Refusal | None]


async def alter_client_quotas(
    broker: ClusterView, context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Change each entity. The changes are durable before the answer."""
    changes, refused = _once(request.entries)

    async def alter(some: Sequence[QuotaChange]) -> Iterable[Outcome]:
        outcome: Sequence[Refusal | None]
        try:
            outcome = await broker.cluster.client_quotas.alter(some, validate_only=request.validate_only)
        except StorageError:
            outcome = [NOT_STORED] * len(some)
        return [(each.entity, refusal) for each, refusal in zip(some, outcome, strict=True)]

    outcome = await in_pieces(broker.rounds, context.turn, changes, alter, ENTITIES_AT_ONCE)
    results = {**dict(outcome), **refused}
    return AlterClientQuotasResponse(entries=tuple(_entry(*each) for each in results.items()))


def _once(entries: Iterable[RequestEntryData]) -> tuple[list[QuotaChange], dict[Entity, Refusal]]:
    """Return the first change of each entity, and refusals.

    An entity is refused if two entries name it, or its entry names a key twice.
    """
    changes: dict[Entity, QuotaChange] = {}
    refused: dict[Entity, Refusal] = {}
    for entry in entries:
        entity = new_entity((each.entity_type, each.entity_name) for each in entry.entity)
        quotas = {op.key: None if op.remove else op.value for op in entry.ops}
        if entity in changes or entity in refused or len(quotas) < len(entry.ops):
            message = f"Ignoring duplicate entity {entity_text(entity)}"
            refused[entity] = Refusal(ErrorCode.INVALID_REQUEST, message)
        else:
            changes[entity] = QuotaChange(entity, quotas)
    return list(changes.values()), refused


def _entry(entity: Entity, refusal: Refusal | None) -> EntryData:
    return EntryData(
        error_code=refusal.error_code if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
    )
