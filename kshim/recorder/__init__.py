"""The flight recorder: the last rebalances of each group, what they meant for partitions, and the story."""
