"""What a consumer does when its broker has a bad day: each fault with each of three clients, unmodified.

The drivers are those of `integration/clients/matrix`. The table of docs/faults.md is made from the results.
"""
