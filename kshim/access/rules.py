"""The two rules of most APIs: the caller needs a right for the whole request, or for each entry.

A rule is called with the asker, the request, and `perform`, which answers a request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from kshim.access.asker import ERRORS, Asker, Divided, Resource
from kshim.answering import error_answers as errors
from kshim.answering.divide import merged
from kshim.answering.views import ClusterView
from kshim.cluster.acl import CLUSTER_NAME, AclOperation, AclResource
from kshim.turns.promise import Answer, Promise, run, settled
from schemas.error_code import ErrorCode
from schemas.mapped import Chained
from schemas.message import Structure

Q = TypeVar("Q", bound=Structure)
R = TypeVar("R", bound=Structure)
A = TypeVar("A")
B = TypeVar("B")
Perform: TypeAlias = Callable[[A], B | Awaitable[B]]
"""Answers a request, at once or later."""
Rule = Callable[[Asker, Any, Perform[Any, Any]], Any]
"""Each API has a type of request and of response; the table has the rules of all of them."""
Spared = Callable[[Iterable[str]], Collection[str]]
"""Returns those of a request's names that the API refuses for another reason, whatever the caller may do."""


class GeneralRule(Protocol):
    """A rule for requests of any API."""

    def __call__(self, asker: Asker, request: Q, perform: Perform[Q, R], /) -> R | Awaitable[R]: ...


class Need(NamedTuple):
    """An operation that the caller must be allowed to do."""

    operation: AclOperation
    resource: AclResource = AclResource.CLUSTER
    named: str = ""
    """The request's field with the resource's name; empty for the cluster."""


def whole(*wanted: Need, message: str = "") -> GeneralRule:
    """Make a rule that refuses the whole request if a need is not met, with the error of the first such need.

    message: of the refusal; if empty, it says which permission is needed.
    """

    def rule(asker: Asker, request: Q, perform: Perform[Q, R]) -> R | Awaitable[R]:
        for operation, resource, named in wanted:
            if not asker.may(operation, resource, getattr(request, named) if named else CLUSTER_NAME):
                response: R = refused(asker, request, ERRORS[resource], message or needs(operation))
                return response
        return perform(request)

    return rule


def needs(operation: AclOperation) -> str:
    """The message of a refusal that has a place for one."""
    return f"The request needs {operation.name} permission."


def each(
    array: str,
    operation: AclOperation,
    resource: AclResource,
    *,
    named: str = "name",
    spared: Spared | None = None,
    message: str = "",
) -> GeneralRule:
    """Make a rule that refuses single entries of an array; the API answers the others.

    named: the entry's field with the resource's name; an entry may also be the name itself, or have a topic
    id instead. spared: entries that are not checked. message: of each refusal.
    """

    def rule(asker: Asker, request: Q, perform: Perform[Q, R]) -> R | Awaitable[R]:
        entries: Sequence[object] = getattr(request, array)
        left_out = spared(getattr(entry, named) for entry in entries) if spared is not None else ()

        def resource_of(entry: object) -> Resource | None:
            name = name_of(asker.broker, entry, named)
            return None if name is None or name in left_out else (resource, name)

        divided = run(asker.divide(operation, entries, resource_of))
        if not isinstance(divided, Promise) and not divided[1]:
            return perform(request)  # most callers may use all entries
        return refuse_some(asker, request, perform, divided)

    async def refuse_some(
        asker: Asker, request: Q, perform: Perform[Q, R], divided: Answer[Divided[object]]
    ) -> R:
        kept, denied = await settled(divided)
        if not denied:
            return await settled(perform(request))
        response = await settled(perform(replace(request, **{array: tuple(kept)})))
        return joined(asker, response, denied, ERRORS[resource], message)

    return rule


def name_of(broker: ClusterView, entry: object, named: str = "name") -> str | None:
    """The name of an entry's resource; None if the entry has the id of a topic that does not exist."""
    if isinstance(entry, str):
        return entry
    name: str | None = getattr(entry, named)
    topic_id = getattr(entry, "topic_id", None)
    if name or topic_id is None or not topic_id.int:
        return name
    topic = broker.cluster.topic_by_id(topic_id)
    return None if topic is None else topic.name


def refused(asker: Asker, request: object, error: ErrorCode, message: str = "") -> Any:
    """Return the response that refuses a whole request. It is empty if the request names nothing."""
    return errors.answer(asker.api_key, asker.version, request, error, message)


def joined(asker: Asker, response: R, denied: Sequence[Any], error: ErrorCode, message: str | None = "") -> R:
    """Add an error for each denied entry to a response, unless the whole response is an error."""
    asker.context.stays_the_same = False
    if getattr(response, "error_code", ErrorCode.NONE):
        return response
    if denied and hasattr(denied[0], "partitions") and hasattr(denied[0], "name"):
        places = {(each.name, getattr(each, "topic_id", None)) for each in denied}
        denied = denied if len(places) == len(denied) else merged(denied)
    array, refusals = errors.entries(asker.api_key, asker.version, denied, error, message)
    return replace(response, **{array: Chained(getattr(response, array), refusals)})
