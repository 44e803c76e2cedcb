"""Consumers with one well-known bug each, and the same consumers mended: `python -m …museum.NAME BUG`."""
