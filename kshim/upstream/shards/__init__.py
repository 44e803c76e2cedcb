"""The groups' journal in a topic of the upstream. Several kshim share its partitions, the shards."""
