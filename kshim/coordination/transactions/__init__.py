"""The transaction coordinator, pure: requests and time in, decisions out.

Like the group coordinator it knows no socket, no clock and no disk. The state of a transactional id is one
frozen value, a `Transaction`. The functions that hold the rules return its next value or an error; only
`replay` stores it.
"""
