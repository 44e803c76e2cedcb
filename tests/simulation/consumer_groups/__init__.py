"""Histories of consumer groups from one seed, around the real coordinator.

Members of the consumer protocol and classic ones, topics, a journal and a network are simulated.

`python -m tests.simulation.consumer_groups SEED` prints one history; `--histories N` runs many.
"""
