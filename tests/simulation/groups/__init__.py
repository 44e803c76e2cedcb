"""Histories of groups from one seed, around the real coordinator and its runtime.

Consumers, brokers, a journal and a network are simulated.

`python -m tests.simulation.groups SEED` prints one history, and `--histories N` in its place runs many.
"""
