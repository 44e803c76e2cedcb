"""Makes certificates for tests: those of an authority, a server and clients. Imported only when needed."""
