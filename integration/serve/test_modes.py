"""Only the user who runs the server may read its data and steer it, whatever the umask is."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.support.clients import new_producer
from integration.support.server import Server

pytestmark = pytest.mark.kshim_only("it looks into kshim's files")

NOBODY = 65534


def modes(directory: Path) -> dict[str, int]:
    """The modes of a directory and of what is in it, by name."""
    found = [directory, *directory.rglob("*")]
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in found}


def test_data_and_control(new_server: Callable[..., Server], topic: str, tmp_path: Path) -> None:
    control = tmp_path / "control"
    server = new_server("--control", str(control), preexec=lambda: os.umask(0) and None).start()
    producer = new_producer(server.bootstrap)
    producer.send(topic, b"secret").get(timeout=20)
    producer.close()
    found = modes(server.data_dir)
    assert {name: oct(mode) for name, mode in found.items()} == {
        name: oct(0o700 if name == server.data_dir.name else 0o600) for name in found
    }
    assert oct(stat.S_IMODE(control.stat().st_mode)) == oct(0o600)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_another_user_cannot_steer(new_server: Callable[..., Server], tmp_path: Path) -> None:
    """Even where the directory is open to all."""
    control = tmp_path / "control"
    new_server("--control", str(control)).start()
    tmp_path.chmod(0o755)
    child = os.fork()
    if not child:
        os.chdir(tmp_path)
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        with socket.socket(socket.AF_UNIX) as client:
            os._exit(0 if client.connect_ex(control.name) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
