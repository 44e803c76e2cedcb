"""Measurements that are no comparison of two servers round by round: each prints what it finds.

`run(sides, directory, settings, rounds)` is given those that may be compared, a directory for their data, and
the settings from the table of cases.
"""
