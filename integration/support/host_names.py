"""Makes host names lead to this machine, for one program.

Not every system resolves names such as b1.kafka.localhost. So the program gets an /etc/hosts of its own, in a
mount namespace of its own.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from integration.support.toolchain import Missing

_RUN = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'


def resolving(names: Sequence[str], directory: Path) -> list[str]:
    """Return what to put before a command, so that it finds 127.0.0.1 under these names. Raises Missing."""
    hosts = directory / "hosts"
    hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in ("localhost", *names)))
    if shutil.which("unshare") is None:
        raise Missing("unshare is not installed")
    before = ["unshare", "--map-root-user", "--mount", "sh", "-c", _RUN, "sh", str(hosts)]
    tried = subprocess.run([*before, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise Missing(f"unshare makes no mount namespace: {tried.stderr.strip()}")
    return before
