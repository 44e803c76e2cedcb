"""The table of routes, and how a path finds its function.

docs/http.md lists the routes for people, assets/openapi.json for programs; tests compare both with the table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote_to_bytes

from kshim.http import connections, groups, health, pages, records, steering, topics
from kshim.http.answers import Answer, Asked, HttpError
from kshim.http.assets import asset
from kshim.http.events import Events
from kshim.http.everywhere import HERE, at_leader
from kshim.http.facts import Facts
from kshim.http.group_page import group_page
from kshim.http.metrics import Metrics
from kshim.http.topic_page import topic_page

Function = Callable[[Facts, Asked], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    """{name} stands for one segment."""
    function: Function
    query: Sequence[str] = ()
    """The names of the query's parameters that are accepted."""


class Routes:
    """Finds the function for a request."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = [(route.path.split("/"), route) for route in routes]

    def __iter__(self) -> Iterator[Route]:
        return (route for _, route in self._routes)

    def find(self, method: str, path: str, query: Mapping[str, str]) -> tuple[Route, tuple[str, ...]]:
        """Return the route, and the segments in place of the {names} of its path. Raises HttpError."""
        segments = path.split("/")
        found = [
            (route, names) for each, route in self._routes if (names := _names(each, segments)) is not None
        ]
        if not found:
            raise HttpError(404, f"no such path: {path[:200]}; GET /openapi.json has all")
        wanted = "GET" if method == "HEAD" else method
        for route, names in found:
            if route.method == wanted:
                _check(route, query)
                return route, names
        allowed = ", ".join(sorted({route.method for route, _ in found}))
        raise HttpError(405, f"{method[:20]} is not served at {path[:200]}; {allowed} is", {"Allow": allowed})


def _names(wanted: Sequence[str], segments: Sequence[str]) -> tuple[str, ...] | None:
    if len(wanted) != len(segments):
        return None
    names = []
    for want, segment in zip(wanted, segments, strict=True):
        if want.startswith("{") and segment:
            names.append(_unquoted(segment))
        elif want != segment:
            return None
    return tuple(names)


def _unquoted(segment: str) -> str:
    """Decode one segment of a path. Raises HttpError."""
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise HttpError(400, f"{segment[:200]}: expected a name in UTF-8, quoted as in a URL") from None


def _check(route: Route, query: Mapping[str, str]) -> None:
    unknown = [name for name in query if name not in route.query]
    if unknown:
        has = f"it has {', '.join(route.query)}" if route.query else "it has none"
        raise HttpError(400, f"{route.path} has no parameter {unknown[0][:100]!r}; {has}")


def _fresh(function: Function) -> Function:
    """Wrap a route's function so that the offsets it shows are current; see `Facts.look`."""

    async def look_first(facts: Facts, asked: Asked) -> Answer:
        if facts.look is not None:
            await facts.look()
        return await function(facts, asked)

    return look_first


def _of_group(path: str, function: Function) -> Route:
    """A route that the process answers which coordinates the group."""
    return Route("GET", path, at_leader(path, function), (HERE,))


def new_routes(facts: Facts) -> Routes:
    """All routes of one listener."""
    return Routes(
        [
            Route("GET", "/groups", _fresh(groups.groups), (HERE,)),
            _of_group("/groups/{group}", _fresh(groups.group)),
            _of_group("/groups/{group}/rebalances", groups.rebalances),
            Route("GET", "/topics", _fresh(topics.topics)),
            Route("GET", "/topics/{topic}/records", _fresh(records.topic_records), records.RECORDS_QUERY),
            Route("GET", "/connections", connections.connections),
            Route("GET", "/events", Events(facts).answer, ("after", "group")),
            Route("GET", "/commands", steering.commands),
            Route("POST", "/commands/{command}", steering.command),
            Route("GET", "/metrics", _fresh(Metrics(facts).answer)),
            Route("GET", "/healthz", health.healthz),
            Route("GET", "/readyz", health.readyz),
            Route("GET", "/openapi.json", partial(asset, "openapi.json")),
            Route("GET", "/", _fresh(pages.groups_page)),
            _of_group("/page/groups/{group}", _fresh(group_page)),
            Route("GET", "/page/topics", _fresh(pages.topics_page)),
            Route("GET", "/page/topics/{topic}", _fresh(topic_page), records.RECORDS_QUERY),
            Route("GET", "/page/connections", pages.connections_page),
            Route("GET", "/page/page.css", partial(asset, "page.css")),
            Route("GET", "/page/page.js", partial(asset, "page.js")),
            Route("GET", "/page/icon.svg", partial(asset, "icon.svg")),
            Route("GET", "/favicon.ico", partial(asset, "icon.svg")),
        ]
    )
