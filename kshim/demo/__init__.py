"""`kshim demo`: unmodified clients share a topic, lose a member and lose the server, before your eyes.

A server, two producers, three consumers and an admin client run, each in its own process. The parent starts
and kills them, and checks at the end that nothing was lost. It knows only the events that the clients report.
"""
