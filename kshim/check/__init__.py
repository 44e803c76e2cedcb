"""Checks that a data directory is intact, and names what is damaged."""
