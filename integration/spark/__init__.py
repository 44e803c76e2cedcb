"""PySpark's own Kafka source and sink against `kshim serve`."""
