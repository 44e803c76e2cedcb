"""Clients that are set up wrongly: what their users see, and the line of the log that says what to change.

Each test has a server of its own, because a server says the same of an address only once.
"""
