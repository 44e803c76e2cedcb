"""DescribeUserScramCredentials (50): which users have a password, and how it is kept (KIP-554)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from kshim.answering.views import ClusterView
from kshim.authentication.scram_credential import ScramMechanism
from kshim.callers import RequestContext
from kshim.turns.slices import in_slices
from schemas.error_code import ErrorCode
from schemas.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

USER_US = 5


async def describe_user_scram_credentials(
    broker: ClusterView, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Return the mechanisms and iterations of the named users, or of all. Their keys are never sent."""
    credentials = broker.cluster.scram_users.credentials
    infos: dict[str, list[CredentialInfo]] = defaultdict(list)
    wanted = Counter(user.name for user in request.users or ())
    for mechanism in ScramMechanism:
        for name in wanted or dict.fromkeys(each for each, of in credentials if of is mechanism):
            credential = credentials.get((name, mechanism))
            if credential is not None:
                info = CredentialInfo(mechanism=mechanism.number, iterations=credential.iterations)
                infos[name].append(info)
    times = wanted or Counter(dict.fromkeys(infos, 1))
    results = await in_slices(
        broker.rounds,
        context.turn,
        list(times),
        lambda name: _result(name, times[name], infos),
        lambda _: USER_US,
    )
    return DescribeUserScramCredentialsResponse(results=tuple(results))


def _result(
    user: str, times: int, infos: Mapping[str, list[CredentialInfo]]
) -> DescribeUserScramCredentialsResult:
    if times == 1 and user in infos:
        return DescribeUserScramCredentialsResult(user=user, credential_infos=tuple(infos[user]))
    error = ErrorCode.RESOURCE_NOT_FOUND
    message = f"Attempt to describe a user credential that does not exist: {user}"
    if times > 1:
        error = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    return DescribeUserScramCredentialsResult(user=user, error_code=error, error_message=message)
