"""Kafka Streams: `Sums.java` counts a feed of numbers, in instances that join, leave and are killed."""
