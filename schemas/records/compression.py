"""The four codecs of record batches, as Kafka's clients write them.

gzip, lz4 and zstd have their ordinary frames. Snappy has two forms: the blocks of the xerial library, which
Java and most clients write, and one raw block, which librdkafka writes. Both are read; the first is written.

A batch expands to at most `MAX_DECOMPRESSED_BYTES`. A size that is only announced takes no memory: the output
is an anonymous mapping, and the system provides only the pages that are written.
"""

import mmap
import struct
from collections.abc import Callable
from enum import IntEnum

__all__ = [
    "MAX_DECOMPRESSED_BYTES",
    "BadCompression",
    "Compression",
    "ExpandsTooFar",
    "compress",
    "decompress",
]

MAX_DECOMPRESSED_BYTES = 256 * 1024 * 1024

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
XERIAL_BLOCK_BYTES = 32 * 1024


class Compression(IntEnum):
    """A codec, as the low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BadCompression(ValueError):
    """The bytes are no output of the codec."""


class ExpandsTooFar(BadCompression):
    """The bytes expand to more than the limit. They may be output of the codec or not."""


_NO_ROOM = ("failed to write whole buffer", "output buffer")
"""The texts with which cramjam reports a full output."""


def decompress(codec: Compression, data: memoryview, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """Expand the records of a compressed batch. Raises BadCompression; ExpandsTooFar beyond `max_bytes`."""
    import cramjam

    decoders: dict[Compression, Callable[[memoryview, mmap.mmap], int]] = {
        Compression.GZIP: cramjam.gzip.decompress_into,
        Compression.SNAPPY: _snappy_into,
        Compression.LZ4: cramjam.lz4.decompress_into,
        Compression.ZSTD: cramjam.zstd.decompress_into,
    }
    with mmap.mmap(-1, max_bytes) as output:
        try:
            size = decoders[codec](data, output)
        except (cramjam.DecompressionError, struct.error) as error:
            if any(sign in str(error) for sign in _NO_ROOM):
                raise ExpandsTooFar(f"{codec.name.lower()}: more than {max_bytes} bytes") from None
            raise BadCompression(f"{codec.name.lower()}: {error}") from None
        return output[:size]


def compress(codec: Compression, data: bytes | bytearray, level: int | None = None) -> bytes:
    """Compress as Kafka's Java client does: lz4 in independent blocks, snappy in xerial's framing.

    level: a level of the codec, None for its default; snappy ignores it.
    """
    import cramjam

    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            return bytes(cramjam.gzip.compress(data, level=level))
        case Compression.SNAPPY:
            return _snappy(bytes(data))
        case Compression.LZ4:
            # Kafka refuses frames whose blocks depend on each other.
            frame = cramjam.lz4.Compressor(level=level, block_linked=False, content_checksum=False)
            frame.compress(bytes(data))
            return bytes(frame.finish())
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=level))


def _snappy(data: bytes) -> bytes:
    import cramjam

    parts = [XERIAL_HEADER]
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + XERIAL_BLOCK_BYTES]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _snappy_into(data: memoryview, output: mmap.mmap) -> int:
    import cramjam

    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        return cramjam.snappy.decompress_raw_into(data, output)
    into = memoryview(output)
    try:
        position, size = len(XERIAL_HEADER), 0
        while position < len(data):
            (length,) = struct.unpack_from(">i", data, position)
            position += 4
            if not 0 <= length <= len(data) - position:
                raise BadCompression(f"snappy: a block of {length} bytes, {len(data) - position} are left")
            size += cramjam.snappy.decompress_raw_into(data[position : position + length], into[size:])
            position += length
        return size
    finally:
        into.release()
