"""The crash harness: a server that is killed again and again while clients work, and what must hold after it.

    python -m integration.crash --kills 200 --seed 1

Producers, members of classic and consumer groups, and transactions go on through every kill. After each kill
`kshim check` must find the data directory sound. At the end, no acknowledged record may be missing, no record
of an idempotent producer doubled, no aborted record read by read_committed, and no committed offset and no
epoch of a member gone back.
"""
