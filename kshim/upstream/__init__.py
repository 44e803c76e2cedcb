"""The backend in front of a Kafka cluster, the upstream: records stay there, groups are kshim's own."""
