"""Checks that everything in a data directory is whole, and names what is damaged."""
