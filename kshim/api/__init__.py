"""One module for each API key, which answers that API's requests, and nothing else."""
