"""Invented attacks: requests of all APIs, in sizes, repetitions and orders that nobody has thought of.

    python -m integration.hostile.invented --histories 1000 --seed 7

A history is a few steps on one server, beside a victim. A step is a request, how often and on how many
connections it is sent, and whether these read. The same seed gives the same frames, except for ids that the
server has given out. `vocabulary` knows the names, `writing` makes the bytes, `history` the steps, and
`search` carries them out and judges them by the bounds of `integration.hostile.attack`.
"""
