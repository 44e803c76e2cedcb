"""After a loss of power every acknowledged record is there, whichever unsynced pages had reached the disk.

    python -m integration.power_loss --records 400 --seed 1
    python -m integration.power_loss --records 40 --fail-syncs 200

A server works for some producers and a consumer group under strace, which notes what it writes and when it
syncs. Then, after each of its system calls, the data file is rebuilt as the disk might hold it: all that was
synced, and a random choice of the unsynced pages. `kshim check` must find each of these files sound, and in
it every record, offset and group epoch that had been acknowledged by then. A client that deletes nothing
mixes in commits that change no page. With --fail-syncs a sync fails, and what was to be synced may be dropped
for good. Needs strace, and permission to use it.
"""
