"""The group coordinator, pure: requests and time in, decisions out.

Nothing here knows a socket, a clock, a source of randomness or a disk. A call takes `now_ms` and returns a
`Decision`; what survives a restart changes only in
`replay`.
"""
