"""Fuzzing of everything that reads bytes from outside. The table is in `targets.py`.

`python -m tests.fuzz TARGET --executions N --seed S` runs one target; without a target, all.
"""
