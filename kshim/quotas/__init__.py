"""What clients have used of their quotas, and how long they must wait, counted as Kafka counts it.

The arithmetic is pure: time is an argument.
"""
