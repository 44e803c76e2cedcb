"""Client addresses in the forms of the log and of Java."""

from __future__ import annotations


def java_host(host: str) -> str:
    """Return an address as Java's InetAddress prints it: "/127.0.0.1", "/0:0:0:0:0:0:0:1"."""
    if ":" not in host:
        return f"/{host}"
    from ipaddress import IPv6Address

    literal, percent, scope = host.partition("%")
    address = IPv6Address(literal)
    if address.ipv4_mapped:
        return f"/{address.ipv4_mapped}"
    return "/" + ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":")) + percent + scope


def unmapped(host: str) -> str:
    """Turn the "::ffff:127.0.0.1" of a dual-stack listener into "127.0.0.1"; return other addresses
    unchanged.
    """
    return host.removeprefix("::ffff:") if "." in host else host
