"""Invented histories of consumer groups (KIP-848): both servers must give the same answers.

A seed is a whole history. Members join, say what they own, change their subscription, come back, leave, and
commit and fetch offsets; administrators describe, list and delete the group. Half of the histories have
classic members as well, and begin in either protocol; a group is converted to and fro.
`python -m integration.differential.members --histories N` plays any number.
"""
