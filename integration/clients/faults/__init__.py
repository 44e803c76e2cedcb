"""Consumers whose requests fail: each fault with each of three unmodified clients.

The drivers are those of `integration/clients/matrix`. The table of docs/faults.md is made from the results.
"""
