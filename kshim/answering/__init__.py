"""Parts that several APIs share when they answer, and the broker that every api function is handed."""

from kshim.answering.broker import Broker

__all__ = ["Broker"]
