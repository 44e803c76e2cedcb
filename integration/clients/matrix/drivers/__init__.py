"""The drivers: programs that know one client each, and nothing of the scenarios."""
