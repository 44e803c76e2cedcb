"""Compares TLS listeners of Apache Kafka and kshim, with equal certificates, clients and properties."""
