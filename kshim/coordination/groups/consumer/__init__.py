"""Groups of the consumer protocol (KIP-848), pure like the classic ones beside them.

A member sends heartbeats; each answer may carry the partitions that it owns from now on. A group has three
kinds of epochs. The group epoch grows when the members or their topics change. A target assignment is
computed for a group epoch. Each member goes from its own epoch to that of the target as soon as it has given
up what others are to get.

A `ConsumerGroup` changes only by replaying records. An operation checks a request first, and raises `Refused`
before it writes the first record; so a refused request changes nothing.
"""
