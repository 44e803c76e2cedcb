"""Programs of all kinds under `kshim torture`: the broken ones are found, the mended ones pass."""
