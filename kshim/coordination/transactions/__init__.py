"""The transaction coordinator, pure: requests and time in, decisions out.

Like the group coordinator it knows no socket, no clock and no disk. A transactional id's state is one frozen
value, a `Transaction`; the functions that hold the rules return its next value or an error, and only `replay`
stores it.
"""
