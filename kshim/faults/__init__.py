"""Faults on command: errors, delays and broken connections, for chosen requests.

No module of this package is imported before the first fault is added.
"""
