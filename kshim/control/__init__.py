"""The commands that a running server takes, the socket where they arrive, and the client that sends them."""
