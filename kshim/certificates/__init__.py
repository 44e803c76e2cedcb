"""Makes certificates for tests: an authority, a server's and clients'. Imported when they are asked for."""
