"""Groups of the consumer protocol. The number in a name is that of a case."""
