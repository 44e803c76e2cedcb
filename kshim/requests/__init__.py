"""What a request is made of and what serves it; all api functions work with these."""

from kshim.requests.broker import Broker
from kshim.requests.context import Client, Refused, RequestContext, Signal

__all__ = ["Broker", "Client", "Refused", "RequestContext", "Signal"]
