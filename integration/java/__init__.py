"""Apache's own Java clients against `kshim serve`."""
