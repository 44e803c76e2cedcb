"""Where records and metadata are kept: a durable store (LMDB) and one in memory, behind the same face."""
