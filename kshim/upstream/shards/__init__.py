"""The groups' journal in an upstream topic, whose partitions (the shards) kshim processes share."""
