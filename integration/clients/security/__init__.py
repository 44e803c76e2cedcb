"""Real clients over each security protocol and mechanism, at kshim and at Apache Kafka.

`cells` has what is tried, `world` starts the two servers with a listener for each, `results` makes the table
of docs/security.md from a run: `KSHIM_RESULTS=FILE tox -e security-all`, then
`python -m integration.clients.security.results FILE`. The drivers are those of `matrix`.
"""
