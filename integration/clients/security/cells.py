"""The combinations tried: a security protocol, with a mechanism where there is one."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

USER, PASSWORD, WRONG = "alice", "wonderland", "looking-glass"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
KEYSTORE_PASSWORD = "changeit"


@dataclass(frozen=True)
class Cell:
    """One row of the table."""

    listener: str
    protocol: str
    mechanism: str = ""

    def __str__(self) -> str:
        if self.listener == "MUTUAL":
            return "SSL with a client's certificate"
        return f"{self.protocol}, {self.mechanism}" if self.mechanism else self.protocol

    def environment(self, certificates: Path, password: str = PASSWORD, user: str = USER) -> dict[str, str]:
        """The environment variables of a driver."""
        told = {"protocol": self.protocol}
        if self.mechanism:
            told |= {"mechanism": self.mechanism, "user": user}
            told |= {"token": token(user)} if self.mechanism == "OAUTHBEARER" else {"password": password}
        if self.protocol.endswith("SSL"):
            told["ca"] = str(certificates / "ca.pem")
        if self.listener == "MUTUAL":
            own = certificates / user
            told |= {"certificate": f"{own}.pem", "key": f"{own}.key"}
            told |= {"keystore": f"{own}.p12", "keystore_password": KEYSTORE_PASSWORD}
        return {"KSHIM_SECURITY": json.dumps(told)}


CELLS: Final = (
    Cell("TLS", "SSL"),
    Cell("MUTUAL", "SSL"),
    *(Cell("LOGIN", "SASL_PLAINTEXT", mechanism) for mechanism in MECHANISMS),
    *(Cell("LOGINTLS", "SASL_SSL", mechanism) for mechanism in MECHANISMS),
)
PROTOCOLS: Final = {"PLAINTEXT": "PLAINTEXT", **{cell.listener: cell.protocol for cell in CELLS}}
"""Of the listeners, by name; servers ask each other nothing but at the first."""


def token(user: str = USER) -> str:
    """An unsecured token of a user."""
    now_s = int(time.time())
    claims = {"sub": user, "iat": now_s, "exp": now_s + 3600}
    return ".".join((_part({"alg": "none"}), _part(claims), ""))


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
