"""The group coordinator, pure: requests and time in, decisions out.

Nothing here knows a socket, a clock, a source of randomness or a disk. A call takes `now_ms` and returns a
`Decision`; only `replay` and `replay_marker` change what survives a restart.
"""
