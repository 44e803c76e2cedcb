"""The health checks: the server lives, and clients can use all of it."""

from __future__ import annotations

from kshim.http.answers import Answer, Asked, HttpError, json_answer
from kshim.http.facts import Facts


async def healthz(facts: Facts, asked: Asked) -> Answer:
    """GET /healthz"""
    return json_answer({"status": "ok"})


async def readyz(facts: Facts, asked: Asked) -> Answer:
    """GET /readyz"""
    why_not = facts.why_not_ready()
    if why_not:
        raise HttpError(503, why_not, {"Retry-After": "1"})
    return json_answer({"status": "ready"})
