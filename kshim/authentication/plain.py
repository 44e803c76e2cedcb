"""PLAIN (RFC 4616): a user name and a password, compared in constant time.

A wrong name takes as long as a wrong password, and gets the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from hmac import compare_digest

from kshim.authentication.mechanism import Answer, AuthenticationFailed, Login, check_authorization_id

NO_USER = "Authentication failed: username not specified"
NO_PASSWORD = "Authentication failed: password not specified"
WRONG = "Authentication failed: Invalid username or password"
FOR_ANOTHER = "Authentication failed: Client requested an authorization id that is different from username"


class Plain:
    """One exchange. Its only token is [authorization id] NUL name NUL password."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        """passwords: by user name."""
        self._passwords = passwords
        self.user = ""

    def step(self, token: bytes, now_ms: int) -> Answer:
        parts = token.decode("utf-8", "replace").split("\0")
        if len(parts) != 3:
            message = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            raise AuthenticationFailed("its message has not three parts", message)
        asked, self.user, password = parts
        if not self.user:
            raise AuthenticationFailed("it sends no user name", NO_USER)
        if not password:
            raise AuthenticationFailed("it sends no password", NO_PASSWORD)
        expected = self._passwords.get(self.user)
        is_equal = compare_digest(_digestible(password), _digestible(expected or ""))
        if expected is None or not is_equal:
            raise AuthenticationFailed("unknown user or wrong password", WRONG)
        check_authorization_id(asked, self.user, FOR_ANOTHER)
        return Answer(b"", Login(self.user))


def _digestible(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
