"""A page about all groups of a cluster: what they did over time, what is wrong now, and why they rebalanced.

`gather` asks the log with Spark, `values` is what it found, and `page` writes it as HTML.
"""
