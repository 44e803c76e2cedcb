"""The client's end of the control socket: send a running server a command, and wait for its answer."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_NAME = "control.sock"
_MAX_SOCKET_NAME_BYTES = 100


class ControlError(Exception):
    """The server refuses the command, or no server listens. str() is one line for the user."""


class NoServer(ControlError):
    """No server listens at the control socket."""


def ask(path: Path, command: str, *arguments: object) -> object:
    """Run `command` with JSON values on the server whose control socket is `path`, and return its result.

    Raises ControlError.
    """
    try:
        with short_path(path) as short, socket.socket(socket.AF_UNIX) as connection:
            connection.connect(short)
            connection.sendall(json.dumps([command, arguments]).encode() + b"\n")
            with connection.makefile("rb") as replies:
                reply = replies.readline()
    except (FileNotFoundError, ConnectionRefusedError):
        raise NoServer(
            f"no server listens at {path}; name its directory with --data-dir, or its --control"
        ) from None
    except OSError as error:
        raise ControlError(f"{path}: {error.strerror}") from error
    if not reply.endswith(b"\n"):
        raise ControlError("the server ended before it answered")
    answer = json.loads(reply)
    if "refused" in answer:
        raise ControlError(answer["refused"])
    return answer["done"]


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yield `path`. If it is too long for a Unix socket, yield a short path, valid in the `with` block."""
    if len(bytes(path)) <= _MAX_SOCKET_NAME_BYTES:
        yield str(path)
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="kshim-") as directory:
        alias = Path(directory) / "d"
        alias.symlink_to(path.parent.absolute())
        yield str(alias / path.name)
