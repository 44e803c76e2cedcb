"""kshim in front of a real Kafka cluster, the upstream: records stay there, groups are kshim's own."""
