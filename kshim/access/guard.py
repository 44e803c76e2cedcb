"""Puts the rules of an API before its function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kshim.access.asker import Asker, RulesView
from kshim.access.rules import Perform, Rule
from kshim.access.table import TABLE
from kshim.answering.views import ApiFunction
from kshim.callers import RequestContext
from schemas.api_key import ApiKey


def guarded(api_key: ApiKey, function: ApiFunction) -> ApiFunction:
    """Return a function that does only what the caller may do, for brokers with an authorizer."""
    rules = TABLE[api_key]

    def guard(broker: RulesView, context: RequestContext, request: object) -> object:
        assert broker.authorizer is not None
        asker = Asker(broker, context, api_key, broker.authorizer)
        return _answer(rules, asker, request, lambda request: function(broker, context, request))

    return guard if rules else function


def _answer(rules: Sequence[Rule], asker: Asker, request: object, perform: Perform[Any, object]) -> object:
    """Apply the rules in order, and perform the rest of the request."""
    if not rules:
        return perform(request)
    rule, rest = rules[0], rules[1:]
    return rule(asker, request, lambda request: _answer(rest, asker, request, perform))
