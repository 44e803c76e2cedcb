"""`kshim demo`: unmodified clients share a topic, lose a member and lose the server, before your eyes.

Two producers and three consumers run, each in its own process, and print what they do as lines of JSON. The
parent starts and kills them and the server, and checks at the end that nothing was lost. Why the group
rebalanced is the server's own account, the one that `kshim why` prints.
"""
