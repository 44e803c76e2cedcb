"""The HTTP listener: JSON, metrics and a page about the groups of a running server.

Imported only if http.listener is set: it needs twisted.web, and a server should start quickly.
"""
