"""Where records and metadata are kept: a durable store (LMDB) and one in memory, with the same interface."""
