"""Parses the value of `sasl.jaas.config` as Kafka does: a login module, a flag, and options.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="wonderland";

It splits the text as Java's StreamTokenizer does: with quotes, escapes and Java's comments; a number is no
word. A fault never quotes the text, which may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kshim.configs.values import Secret

FLAGS = ("required", "requisite", "sufficient", "optional")
_LETTER = r"[A-Za-z_$\xa0-\U0010ffff-]"
_TOKEN = re.compile(
    rf"""(?P<space>[\x00-\x20]+ | //[^\r\n]* | /\*.*?(?:\*/|\Z) | /[^\r\n]*)
    | (?P<number>-?(?:[0-9][0-9.]*|\.[0-9][0-9.]*) | -(?=\.) )
    | (?P<word>(?!-){_LETTER}(?:{_LETTER}|[0-9.])*)
    | "(?P<double>(?:\\.|[^"\\\r\n])*)"?
    | '(?P<single>(?:\\.|[^'\\\r\n])*)'?
    | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Token(NamedTuple):
    """A word, or a sign such as `=`. A number is a token with neither."""

    word: str | None
    sign: str = ""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One entry of `sasl.jaas.config`."""

    name: str
    """The Java class that Kafka would load."""
    options: Mapping[str, Secret]

    def users(self) -> dict[str, Secret]:
        """The passwords of PLAIN's users (`user_NAME="PASSWORD"`), by name."""
        prefix = "user_"
        return {key[len(prefix) :]: text for key, text in self.options.items() if key.startswith(prefix)}


def parse_jaas(text: str) -> LoginModule:
    """Parse the only entry of `text`. Raises ValueError, which says what is missing, and where."""
    modules = list(_modules(_tokens(text)))
    if len(modules) != 1:
        raise ValueError(f"expected one login module, but there are {len(modules)}")
    return modules[0]


def _modules(tokens: Iterator[Token]) -> Iterator[LoginModule]:
    for first in tokens:
        flag = next(tokens, Token(None)).word
        if flag is None or flag.lower() not in FLAGS:
            raise ValueError(f"expected {', '.join(FLAGS)} after the name of the login module")
        options: dict[str, Secret] = {}
        for key in tokens:
            if key.sign == ";":
                break
            if next(tokens, Token(None)).sign != "=" or (value := next(tokens, Token(None)).word) is None:
                raise ValueError(f'expected OPTION="VALUE" as option {len(options) + 1}, VALUE in quotes')
            options[key.word or ""] = Secret(value)
        else:
            raise ValueError("expected a semicolon at the end")
        yield LoginModule(first.word or "", options)


def _tokens(text: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(text):
        kind, part = found.lastgroup, found[found.lastgroup or 0]
        if kind == "word":
            yield Token(part)
        elif kind in ("double", "single"):
            yield Token(_ESCAPE.sub(_unescaped, part))
        elif kind == "number":
            yield Token(None)
        elif kind == "sign":
            yield Token(None, part)


def _unescaped(found: re.Match[str]) -> str:
    octal, other = found.groups()
    return chr(int(octal, 8)) if octal else _ESCAPES.get(other, other)
