"""The same certificates, clients and properties with TLS listeners of Apache Kafka and of kshim."""
