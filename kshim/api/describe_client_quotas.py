"""DescribeClientQuotas (48): there are no quotas, so every valid filter finds none (KIP-546)."""

from __future__ import annotations

from collections.abc import Sequence

from kshim.requests import Broker, RequestContext
from schemas.error_code import ErrorCode
from schemas.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

EXACT, DEFAULT, SPECIFIED = 0, 1, 2  # match types
ENTITY_TYPES = ("user", "client-id", "ip")


def describe_client_quotas(
    broker: Broker, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """No entries, or the error of an invalid filter."""
    error, message = _fault(request.components)
    if error is not ErrorCode.NONE:
        return DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None)
    return DescribeClientQuotasResponse(error_code=error, entries=())


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
    if "ip" in seen and len(seen) > 1:
        return ErrorCode.INVALID_REQUEST, (
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component."
        )
    return ErrorCode.NONE, None


def _fault_in_match(component: ComponentData) -> str | None:
    match component.match_type, component.match:
        case 0, None:
            return "Request specified MATCH_TYPE_EXACT, but set match string to null."
        case (1 | 2) as other, str():
            name = "DEFAULT" if other == DEFAULT else "SPECIFIED"
            return f"Request specified MATCH_TYPE_{name}, but also specified a match string."
        case int(other), _ if other not in (EXACT, DEFAULT, SPECIFIED):
            return f"Unknown match type {other}"
    return None
