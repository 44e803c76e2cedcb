"""Quotas: Apache Kafka and kshim throttle the same requests, for the same time."""
