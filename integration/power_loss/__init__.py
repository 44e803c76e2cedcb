"""What a loss of power leaves: every acknowledged record, whichever unsynced pages the disk had written.

    python -m integration.power_loss --records 400 --seed 1

A server works for some producers under strace, which notes what it writes and when it syncs. Then, after each
of its system calls, the data file is put together as the disk might hold it: what was synced, and some pages
of what was not, as chance decides. `kshim check` must find each of these files whole, and every record in it
that had been acknowledged until then. Needs strace, and the right to use it.
"""
