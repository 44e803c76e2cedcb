"""The same history told to Apache Kafka and to kshim: do they answer the same?

`history` says what a history is and `histories` holds them; `player` plays one against one server, and
`compare` tells where two servers differ. What may differ stands in docs/differences.md, and nowhere else.
"""
