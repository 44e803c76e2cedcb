"""Whole group histories from one seed: consumers, brokers, a journal and a network, all of them made up,
around the coordinator and its runtime, which are real.

`python -m tests.simulation.groups SEED` tells one history, and `--histories N` in its place runs many.
"""
