"""Checks each request before it reaches its api function, if the server has an authorizer.

`table` lists what each API needs. A rule removes from the request what the caller may not do, calls the API
for the rest, and adds Kafka's errors to the answer. Without an authorizer, nothing of this package is
imported.
"""
