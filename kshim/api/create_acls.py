"""CreateAcls (30): add rules that say who may do what (KIP-140). v1: prefixed patterns; v2: flexible; v3:
users.

Without an authorizer, all rules are refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from kshim.answering.acl_codes import require_known
from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Refusal
from kshim.cluster.acl import Acl, Pattern
from kshim.storage.interfaces import StorageError
from kshim.turns.slices import Slices
from schemas.error_code import ErrorCode
from schemas.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse

REFUSED = Refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
FAILED = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
NOT_STORED = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The ACLs could not be stored.")


async def create_acls(
    broker: ClusterView, context: RequestContext, request: CreateAclsRequest
) -> CreateAclsResponse:
    """Create or refuse each ACL independently. The new ACLs are durable and in force before the answer."""
    creations = [_acl(each) for each in request.creations]
    if broker.cluster.acls is None:
        return _response([REFUSED] * len(creations))
    if any(acl.is_filter for acl in creations):
        return _response([FAILED] * len(creations))
    try:
        made = await broker.cluster.acls.create(creations, Slices(broker.rounds, context.turn).spend)
    except StorageError:
        return _response([NOT_STORED] * len(creations))
    return _response(made)


def _acl(creation: AclCreation) -> Acl:
    """Return the ACL that an entry describes. Raises Refused."""
    resource_type, pattern_type = creation.resource_type, creation.resource_pattern_type
    operation, permission = creation.operation, creation.permission_type
    require_known(resource_type, pattern_type, operation, permission)
    pattern = Pattern(resource_type, creation.resource_name, pattern_type)
    return Acl(pattern, creation.principal, creation.host, operation, permission)


def _response(outcome: Iterable[Refusal | None]) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=tuple(
            AclCreationResult(
                error_code=refusal.error_code if refusal else ErrorCode.NONE,
                error_message=refusal.message if refusal else "",
            )
            for refusal in outcome
        )
    )
