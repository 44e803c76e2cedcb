"""The coordinator's log, read by Spark: what groups have committed, their lag, and why they rebalance."""
