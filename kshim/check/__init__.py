"""Whether all that a data directory holds is whole, and what exactly is damaged."""
