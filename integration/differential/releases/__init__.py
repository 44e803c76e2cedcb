"""Two releases of Apache Kafka side by side: what has changed, as clients see it?

    python -m integration.differential.releases 4.2.0 4.4.0

compares the definitions of the messages in both `kafka-clients` jars, the APIs and features that both
announce, all configs with their defaults, and the answers to stories of administrators and to invented
histories. kshim takes no part.
"""
