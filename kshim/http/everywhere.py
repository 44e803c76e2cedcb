"""Pages and JSON of groups that another process coordinates: they are fetched there, and passed on.

`?here=true` asks for what this process itself coordinates; processes ask each other so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from kshim.control.others import NotAnswered, coordinated_by
from kshim.http.answers import Answer, Asked, HttpError
from kshim.http.facts import Facts

HERE = "here"
"""The parameter of the query."""


def is_here(asked: Asked) -> bool:
    """True if the asker wants nothing of other processes."""
    return asked.query.get(HERE) == "true"


def at_leader(
    path: str, function: Callable[[Facts, Asked], Awaitable[Answer]]
) -> Callable[[Facts, Asked], Awaitable[Answer]]:
    """Wrap a route about one group, so that the process answers that coordinates the group.

    path: the route's, with {group} in place of the group's id.
    """

    async def answer(facts: Facts, asked: Asked) -> Answer:
        others, group_id = facts.others, asked.names[0]
        other = None if others is None or is_here(asked) else others.leader(group_id)
        if others is None or other is None:
            return await function(facts, asked)
        target = path.replace("{group}", quote(group_id, safe=""))
        try:
            page = await others.page(other, f"{target}?{HERE}=true")
        except NotAnswered as error:
            raise HttpError(503, coordinated_by(group_id[:200], other, error)) from error
        return Answer(page.body, page.content_type, page.status)

    return answer
