"""The transaction coordinator, pure: requests and time in, decisions out.

Like the group coordinator it knows no socket, no clock and no disk. A transactional id's state is one frozen
value, a `Transaction`; the functions that hold the rules make the next value of it or name the error, and
`replay` is the only one that puts it in its place.
"""
