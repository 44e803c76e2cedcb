"""The group coordinator, pure: requests and time in, decisions out.

No module of this package knows a socket, a clock, a source of randomness or a disk. A call takes `now_ms` and
returns a `Decision`; only `replay` and `replay_marker` change the state that survives a restart.
"""
