"""One server over two backends: the order of start and stop, and everything that both backends need."""


class StartError(Exception):
    """The server cannot start. str() is one line for the user."""
