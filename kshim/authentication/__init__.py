"""SASL's mechanisms as pure state machines: a token in, a token out, and at the end the client's name."""
