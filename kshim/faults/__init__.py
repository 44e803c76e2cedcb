"""Faults on command: errors, delays and broken connections, for the requests that somebody chooses.

Nothing here runs, or is imported, before the first fault is added.
"""
