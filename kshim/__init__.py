"""kshim: a Kafka-protocol server with its own group coordinator."""

__version__ = "0.1.0"


def platform_fault(platform: str) -> str:
    """Why kshim does not run on a platform, in one line; empty if it may. platform: as `sys.platform`."""
    if platform in ("win32", "cygwin"):
        needed = "fork, fcntl and Unix sockets"
        return f"kshim does not run on Windows, as it needs {needed}: use WSL 2 or a container"
    return ""
