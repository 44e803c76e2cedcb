"""Puts a program that consumes through all that a group goes through, and judges its promise."""
