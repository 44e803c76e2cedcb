"""From bytes to requests, and from replies to bytes: listeners, connections, TLS, logins, dispatch."""
