"""The crash harness: a server that is killed again and again while clients work, and what must hold after it.

    python -m integration.crash --kills 200 --seed 1

Producers, group consumers and transactions go on over every kill. After each one `kshim check` must find the
directory whole; at the end, nothing that was acknowledged may be missing, nothing doubled that an idempotent
producer has sent, no aborted record read by read_committed, and no committed offset may have gone back.
"""
