"""For users' tests: start a kshim server, or a local Spark, in the least time."""
