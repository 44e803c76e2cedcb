"""What a request is made of and what serves it; all api functions work with these."""

from kshim.requests.broker import Broker, Groups, Transactions
from kshim.requests.context import Client, Refused, RequestContext, Signal

__all__ = ["Broker", "Client", "Groups", "Refused", "RequestContext", "Signal", "Transactions"]
