"""Quix Streams: a program that keeps its state in a changelog, and loses a process."""
