"""A request's sender: its connection, its name, and what the log says when its user has made a mistake."""

from kshim.callers.context import Client, Refused, RequestContext

__all__ = ["Client", "Refused", "RequestContext"]
