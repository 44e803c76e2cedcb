"""A page about all groups of a cluster: what they did over time, what is wrong now, and why they rebalanced.

`gather` queries the log with Spark, `values` has the types of the results, and `page` writes them as HTML.
"""
