"""A request's parts and the broker that serves it; every api function works with these."""

from kshim.requests.broker import Broker
from kshim.requests.context import Client, Refused, RequestContext, Signal, Turn

__all__ = ["Broker", "Client", "Refused", "RequestContext", "Signal", "Turn"]
