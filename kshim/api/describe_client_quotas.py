"""DescribeClientQuotas (48): the quotas of all entities that a filter finds (KIP-546)."""

from __future__ import annotations

from collections.abc import Sequence

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster.client_quotas import ENTITY_TYPES, IP, Component, Entity, MatchType, meets
from kshim.turns.slices import in_slices
from schemas.error_code import ErrorCode
from schemas.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

ENTITY_US = 5


async def describe_client_quotas(
    broker: ClusterView, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Return the entities that match all components of the filter.

    A filter without components matches all entities; if it is strict, none.
    """
    error, message = _fault(request.components)
    if error is not ErrorCode.NONE:
        return DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None)
    quotas = broker.cluster.client_quotas.by_entity
    components = [
        Component(each.entity_type, MatchType(each.match_type), each.match) for each in request.components
    ]

    def find(entity: Entity) -> EntryData | None:
        values = quotas.get(entity)
        if values is None or not meets(entity, components, strict=request.strict):
            return None
        return EntryData(
            entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
            values=tuple(ValueData(key=key, value=value) for key, value in values.items()),
        )

    found = await in_slices(broker.rounds, context.turn, list(quotas), find, lambda _: ENTITY_US)
    entries = tuple(entry for entry in found if entry is not None)
    return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, entries=entries)


def _fault(components: Sequence[ComponentData]) -> tuple[ErrorCode, str | None]:
    seen: set[str] = set()
    for component in components:
        kind = component.entity_type
        if kind == "":
            return ErrorCode.INVALID_REQUEST, "Invalid empty entity type."
        if kind in seen:
            twice = f"Entity type {kind} cannot appear more than once in the filter."
            return ErrorCode.INVALID_REQUEST, twice
        if kind not in ENTITY_TYPES:
            return ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
        if (fault := _fault_in_match(component)) is not None:
            return ErrorCode.INVALID_REQUEST, fault
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        return ErrorCode.INVALID_REQUEST, (
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component."
        )
    return ErrorCode.NONE, None


def _fault_in_match(component: ComponentData) -> str | None:
    match component.match_type, component.match:
        case MatchType.EXACT, None:
            return "Request specified MATCH_TYPE_EXACT, but set match string to null."
        case (MatchType.DEFAULT | MatchType.SPECIFIED) as other, str():
            name = MatchType(other).name
            return f"Request specified MATCH_TYPE_{name}, but also specified a match string."
        case int(other), _ if other not in list(MatchType):
            return f"Unknown match type {other}"
    return None
