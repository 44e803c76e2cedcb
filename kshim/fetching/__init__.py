"""Fetch sessions, reads of the log, and fetches that wait for records."""
