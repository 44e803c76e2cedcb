"""Kafka Connect in distributed mode: workers that join, leave and are killed carry lines from file to file."""
