"""Hostile clients: attacks on a server, each beside a victim, an ordinary client of the same server.

    python -m integration.hostile                   all attacks
    python -m integration.hostile stored-bomb half-frames
    python -m integration.hostile.crowd             ten thousand connections

No client may stop all others. While an attack runs, there is a bound for the victim's wait for an answer, and
one for the server's memory. When the attacker is gone, the server gives the memory back. After `kill -9` the
server is soon back, with everything that it had acknowledged to the victim.
"""
