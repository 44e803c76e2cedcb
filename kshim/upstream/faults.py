"""How faults are applied to requests in front of an upstream. Imported at the first fault."""

from __future__ import annotations

from collections.abc import Callable

from kshim.answering import error_answers
from kshim.callers import RequestContext
from kshim.faults.answers import Usual
from kshim.faults.fault import Error, Fault
from kshim.faults.refusals import names_in
from kshim.network.shared import Response
from kshim.turns.promise import Promise
from kshim.upstream.here import Here
from kshim.upstream.relay import Relays
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.registry import VERSIONS

INNER = frozenset({ApiKey.FETCH, ApiKey.METADATA})
"""APIs whose answers have topics and partitions that only the upstream knows."""


def usual(answer: Callable[..., Response | Promise[Response]], relays: Relays) -> Usual[Here]:
    """Return how requests are answered without faults, and refused. answer: `Front.answer`."""

    def need_whole(need_whole: bool) -> None:
        relays.need_whole = need_whole

    return Usual(
        answer,
        lambda broker, *asked: names_in(broker.cluster, *asked),
        lambda _, *asked: _can_be_refused(*asked),
        _refused,
        need_whole,
        why_never,
    )


def why_never(fault: Fault) -> str:
    """Return why a fault can never strike: its error belongs to topics or partitions that only the upstream
    knows. Empty if it can.
    """
    if not isinstance(fault.action, Error) or fault.api not in INNER:
        return ""
    if any(error_answers.is_at_top(fault.api, version, fault.action.code) for version in VERSIONS[fault.api]):
        return ""
    return (
        f"{fault.action.code.name} stands at partitions or topics in the answer to {fault.api.title}, "
        f"which only the upstream knows; expected --delay-ms, --drop, --close, --stall-ms or --bytes-per-s"
    )


def _can_be_refused(api_key: ApiKey, version: int, request: object, error: ErrorCode) -> bool:
    """True if kshim can build the answer to a request with this error. It cannot if the error belongs to the
    partitions of a Fetch or the topics of a Metadata, which only the upstream knows.
    """
    if api_key in INNER and not error_answers.is_at_top(api_key, version, error):
        return False
    return error_answers.has_place(api_key, version, request, error)


def _refused(
    broker: Here,
    context: RequestContext,
    api_key: ApiKey,
    request: object,
    error: ErrorCode,
    topic: str | None,
) -> object:
    """Return the response with an error that `_can_be_refused` allows."""
    return error_answers.answer(api_key, context.api_version, request, error)
