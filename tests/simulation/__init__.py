"""Whole group histories from one seed: consumers, brokers, a journal and a network, all of them made up,
around the coordinator and its runtime, which are real.

`python -m tests.simulation SEED` tells one history; `python -m tests.simulation --histories N` runs many.
"""
