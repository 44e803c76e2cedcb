"""Unmodified clients against `kshim serve` as a separate process."""
