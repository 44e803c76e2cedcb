"""Stands before the api functions where there is an authorizer, and refuses what is not allowed.

`table` says what each API needs. A rule takes what the caller may not do out of the request, lets the API
answer the rest, and puts Kafka's errors into the answer. Nothing here is imported without an authorizer.
"""
