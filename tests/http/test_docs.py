"""The examples of docs/http.md are what a server answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kshim.http.routes import new_routes
from tests.http.harness import Kshim, billing

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
EXAMPLE = re.compile(r"```http\n(?P<asked>.*?)\n```\n\n```json\n(?P<answer>.*?)\n```", re.DOTALL)
ANYTHING = "\u2026"
"""Stands for anything."""


def pattern(answer: str) -> str:
    """A regular expression for a JSON text, in which blanks do not matter."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[^\s"]', answer)
    return r"\s*".join(re.escape(token).replace(ANYTHING, ".*?") for token in tokens)


def test_the_examples() -> None:
    kshim = Kshim(http_steering_enable=True)
    billing(kshim)
    examples = list(EXAMPLE.finditer(PAGE))
    assert len(examples) >= 10
    for example in examples:
        head, _, body = example["asked"].partition("\n\n")
        line, *headers = head.split("\n")
        method, target = line.split(" ")
        given: dict[str, Any] = dict(header.split(": ", 1) for header in headers)
        reply = kshim.ask(method, target, given, body.encode() or None)
        said = reply.body.decode()
        assert re.fullmatch(pattern(example["answer"]), said.strip(), re.DOTALL), f"{line}\n{said}"


def test_all_routes_are_listed() -> None:
    routes = {(route.method, route.path) for route in new_routes(Kshim().facts)}
    listed = re.findall(r"^\| `(GET|POST) (/\S*)`", PAGE, re.MULTILINE)
    names = {"{group}": "G", "{topic}": "T", "{command}": "NAME"}
    told = set(listed)
    routes = {(method, path) for method, path in routes if not path.startswith("/page/")}
    for method, path in routes:
        for name, short in names.items():
            path = path.replace(name, short)
        assert (method, path) in told, f"{method} {path}"
    assert len(told) == len(routes)


def test_all_commands_are_listed() -> None:
    served = Kshim(http_steering_enable=True).get("/commands").json["commands"]
    table = PAGE.partition("| Command | Arguments | |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1:3] for row in table.splitlines()[2:]]
    told = {name: arguments for names, arguments in rows for name in re.findall("`(.*?)`", names)}
    assert set(told) == set(served)
    for name, arguments in told.items():
        outer = re.sub(r"\[.*\]", "array", arguments)
        assert len([each for each in outer.split(",") if each.strip()]) == len(served[name]), name
