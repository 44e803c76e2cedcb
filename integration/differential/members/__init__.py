"""Invented histories of consumer groups (KIP-848): both servers must give the same answers.

A seed is a whole history. Members join, say what they own, change their subscription, come back, leave, and
commit; half of the histories have classic members as well, and begin in either protocol.
"""
