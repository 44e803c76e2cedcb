"""Measurements that are no comparison of two servers round by round: each prints what it finds.

`run(sides, directory, rounds)` is called with those that may be compared, and a directory for their data.
"""
