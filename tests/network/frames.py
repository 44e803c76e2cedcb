"""Frames as they are sent: four bytes of size, then the payload."""

from kshim.network.frames import framed


def frame(payload: bytes) -> bytes:
    return b"".join(framed(payload))
