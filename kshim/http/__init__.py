"""The HTTP listener: JSON, metrics and a page about the groups of a running server.

Imported only when it is asked for (http.listener): it needs twisted.web, and a server should start quickly.
"""
