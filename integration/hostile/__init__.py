"""Hostile clients: attacks on a server, each beside a victim, an ordinary client of the same server.

    python -m integration.hostile                   all attacks
    python -m integration.hostile stored-bomb half-frames
    python -m integration.hostile.crowd             ten thousand connections

Nobody may stop all others: while an attack runs, the victim waits for no answer longer than a bound, and the
server's memory stays within one. When the attacker is gone the memory is given back, and after `kill -9` the
server is soon back with all that it had acknowledged to the victim.
"""
