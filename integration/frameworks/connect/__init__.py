"""Kafka Connect in distributed mode: workers that come and go carry lines from file to file."""
