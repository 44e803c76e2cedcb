"""Counts how much of their quotas clients have used, and how long they must wait, as Kafka does.

The arithmetic is pure: time is an argument.
"""
