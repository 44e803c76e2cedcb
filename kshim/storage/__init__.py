"""Stores of records and metadata: a durable one (LMDB) and one in memory, with the same interface."""
